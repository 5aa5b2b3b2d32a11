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
return { now, left, flags, 0, 'held', left, 0, call('HGET', N, 'token') or '' }
