-- SPDX-License-Identifier: Apache-2.0
-- Fencing tokens (S3). Redisson counts on the same key, and tells its holders what INCR answers by
-- way of Lua, whose numbers are exact below 2^53 only. So a token is at least the server's TIME
-- in us, below 2^53 until the year 2255, and never later than that unless the counter is (rule
-- H12). A counter that is later, by others or by a clock that was set back, is counted on by the
-- server, whatever its size, and never made a number here. What INCRBY would refuse is foreign data, told
-- before the first write.
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
-- The next one: max(last + 1, TIME).
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
-- A block, for sections of the holder's process that the server does not see (rule H11): what the clock
-- has gone on by since the last one, a thousand at most; else one. The first, and how many.
-- rule: H11, H12
local function token_block()
  local last = token_last()
  if not last or not token_above(string.format('%.0f', now), last) then return token_next(), 1 end
  local first = math.max(last + 1, now - 999)
  call('SET', token, string.format('%.0f', now))
  return string.format('%.0f', first), now - first + 1
end
