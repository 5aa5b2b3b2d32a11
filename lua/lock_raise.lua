-- SPDX-License-Identifier: Apache-2.0
-- Raises the lease of an exclusive hold, with the lock's own key and no other: a server that moves
-- the hash slot to another node serves nothing that names more keys, because most do not exist (P20).
-- KEYS[1] N  the lock
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] lease, ms
-- ARGV[4] 1: writes in any case (rule P11)
-- Returns the common answer; what: held, gone
-- Effects: TTL of N
-- rule: P20, T4
local N, layout, id, lease, confirm = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local call = redis.call
local value = call('HGET', N, id)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local left = call('PTTL', N)
if not value then return { now, left, 0, 0, 'gone', -1, 0, '' } end
if left < lease then
  call('PEXPIRE', N, ARGV[3]) -- lease, as text
  left = lease
elseif confirm == '1' then
  left = left + 1
  call('PEXPIRE', N, left)
end
local own = call('HGET', N, 'token') or ''
if #own > 20 then own = '?' end -- as in lib/answer.lua
return { now, left, 0, 0, 'held', left, 0, own }
