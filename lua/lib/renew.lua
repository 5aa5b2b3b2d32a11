-- SPDX-License-Identifier: Apache-2.0
-- The renewal of an exclusive lock: see mutex_renew.lua.
-- Needs: the names that mutex_renew.lua gives to keys and arguments.
local call = redis.call
local mine = call('HEXISTS', N, id)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
local flags = waiting()
local left = call('PTTL', N)
if mine == 0 then return { now, left, flags, 0, 'gone', -1, 0, '' } end
if left < lease then
  call('PEXPIRE', N, lease)
  left = lease
end
if string.byte(id, -1) > 57 and string.find(id, ':%a%d+%l*b')
  and call('EXPIRE', dirty, 604800) == 0 then
  call('SET', dirty, id .. '#1', 'EX', 604800)
end
return { now, left, flags, 0, 'held', left, 0, call('HGET', N, 'token') or '' }
