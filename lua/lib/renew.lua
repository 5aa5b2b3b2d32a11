-- SPDX-License-Identifier: Apache-2.0
-- The renewal of an exclusive lock: see mutex_renew.lua.
-- Needs: the names that mutex_renew.lua gives to keys and arguments.
-- rule: T4, K2, K10, K11, P11
local call = redis.call
local value = call('HGET', N, id)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local flags = 0
if call('EXISTS', queue, rqueue) > 0 then
  flags = (call('ZCARD', queue) > 0 and 1 or 0) + (call('ZCARD', rqueue) > 0 and 2 or 0)
end
local left = call('PTTL', N)
if not value then return { now, left, flags, 0, 'gone', -1, 0, '' } end
if left < lease then
  call('PEXPIRE', N, ARGV[3]) -- lease, as text
  left = lease
elseif confirm == '1' then
  left = left + 1
  call('PEXPIRE', N, left)
end
if string.byte(id, -1) > 57 and string.find(id, ':%a%d+%l*b') then
  local own = number ~= 0 and call('GET', dirty)
  if number < 0 then
    -- exactly this mark: the request may be late, and another thread inside again
    if own == id .. '#' .. -number then call('DEL', dirty) end
  elseif (own and string.sub(own, 1, #id + 1) == id .. '#'
    and (tonumber(string.sub(own, #id + 2)) or 0) < number)
    or call('EXPIRE', dirty, '604800') == 0 then
    call('SET', dirty, id .. '#' .. math.max(number, 1), 'EX', '604800')
  end
end
--include note
-- Whether another client wants the lock, and whether the holder will get a message about later ones
-- (lib/messages.lua). Redisson's waiters are checked only where the reply matters: for a holder that
-- shares or retains the lock.
local heard = flags == 0 and tell == '1' and redis.pcall('PUBSUB', 'NUMSUB', channel)
if heard and heard[2] == 0 and layout ~= '1' then
  heard = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
end
if flags == 0 and (value == '3' or (heard and heard[2] and heard[2] ~= 0)) then flags = 32 end
if tell == '1' and value == '1' then
  value = flags == 0 and '2' or '3'
  if not note(id, value) then value = '1' end
end
if value == '2' then flags = flags + 64 end
-- in lower case: without fencing
local plain = string.find(id, ':m', 1, true) or string.find(id, ':f', 1, true)
local own = not plain and call('HGET', N, 'token') or ''
if #own > 20 then own = '?' end -- as in lib/answer.lua
if more ~= '1' or own == '' then return { now, left, flags, 0, 'held', left, 0, own } end
--include token
-- without memory for it, or if the key holds something else, the lease counts all the same
local drawn, first, count = pcall(token_block)
if not drawn then first, count = own, 0 end
return { now, left, flags, 0, 'held', left, count, first }
