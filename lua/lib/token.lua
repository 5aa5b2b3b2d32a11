-- SPDX-License-Identifier: Apache-2.0
-- The next fencing token (S3): max(last + 1, server TIME in ns), as a string, because
-- Lua's doubles end at 2^53; INCR counts exactly in the server, its reply through Lua
-- does not. Redisson counts on the same key. What INCRBY would refuse is foreign data, told
-- before the first write. A mutex and a writer are given a block of a thousand, one for each section
-- of threads that pass it on (rules H11, H12); what is answered is the first of them.
-- Needs: call, t, token.
local function token_last()
  local last = call('GET', token)
  if last and (not string.match(last, '^%d+$') or #last > 19
    or (#last == 19 and last > '9223372036854774807')) then
    error('the token key holds foreign data', 0)
  end
  return last
end
-- letter: of the id that it is for.
local function token_next(letter)
  local last = token_last()
  local base = string.format('%d%06d000', t[1], t[2])
  if last and (#last > #base or (#last == #base and last >= base)) then
    call('INCRBY', token, '1')
    base = call('GET', token)
  else
    call('SET', token, base)
  end
  if letter == 'M' or letter == 'W' then call('INCRBY', token, '999') end
  return base
end
