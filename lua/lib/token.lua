-- SPDX-License-Identifier: Apache-2.0
-- Fencing tokens (S3). Redisson counts with the same key, and gives its holders the reply of INCR
-- by way of Lua, whose numbers are exact only below 2^53. So a token is at least the server's TIME
-- in us, which is below 2^53 until the year 2255, and not later than TIME unless the counter is
-- (rule H12). A counter that is later, because of other programs or a clock that was set back, is
-- increased by the server, whatever its size, and never becomes a number here. A value that INCRBY
-- would refuse is foreign data, reported before the first write.
-- Needs: call, now, token.
local function token_last()
  local last = call('GET', token)
  if last and last ~= '0' and (not string.match(last, '^[1-9]%d*$') or #last > 19
    or (#last == 19 and last > '9223372036854774807')) then
    error('the token key holds foreign data', 0)
  end
  return last
end
local function token_above(a, b) return #a > #b or (#a == #b and a > b) end
-- The next token: max(last + 1, TIME).
-- rule: H12, S3
local function token_next()
  local last, clock = token_last(), string.format('%.0f', now)
  if last and not token_above(clock, last) then
    call('INCRBY', token, '1')
    return call('GET', token)
  end
  call('SET', token, clock)
  return clock
end
-- A block of tokens, for sections of the holder's process that the server does not see (rule H11):
-- as many us as have passed since the last block, a thousand at most; at least one. Returns the
-- first one, and how many.
-- rule: H11, H12
local function token_block()
  local last = token_last()
  if not last or not token_above(string.format('%.0f', now), last) then return token_next(), 1 end
  local first = math.max(last + 1, now - 999)
  call('SET', token, string.format('%.0f', now))
  return string.format('%.0f', first), now - first + 1
end
