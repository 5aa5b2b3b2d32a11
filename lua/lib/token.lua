-- SPDX-License-Identifier: Apache-2.0
-- The next fencing token (S3): max(last + 1, server TIME in ns), as a string, because
-- Lua's doubles end at 2^53; INCR counts exactly in the server, its reply through Lua
-- does not. Redisson counts on the same key. What INCR would refuse is foreign data, told
-- before the first write.
-- Needs: call, t, token.
local function token_last()
  local last = call('GET', token)
  if last and (not string.match(last, '^%d+$') or #last > 19
    or (#last == 19 and last >= '9223372036854775807')) then
    error('the token key holds foreign data', 0)
  end
  return last
end
local function token_next()
  local last = token_last()
  local base = string.format('%d%06d000', t[1], t[2])
  if last and (#last > #base or (#last == #base and last >= base)) then
    call('INCR', token)
    return call('GET', token)
  end
  call('SET', token, base)
  return base
end
