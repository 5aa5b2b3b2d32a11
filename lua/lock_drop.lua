-- SPDX-License-Identifier: Apache-2.0
-- Releases an exclusive hold, with the lock's own key and no other (see lock_raise.lua). Nobody is
-- handed the lock: waiters find it by their polls, when the hash slot is at one node again.
-- KEYS[1] N  the lock
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] channel where Redisson's waiters listen
-- Returns the common answer; what: released, notmine
-- Effects: N deleted; message 0 on the channel
-- rule: P20
local N, layout, id, channel = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local call = redis.call
local mine = call('HEXISTS', N, id)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
if mine == 0 then return { now, call('PTTL', N), 0, 0, 'notmine', -1, 0, '' } end
call('DEL', N)
--include announce
return { now, -2, 0, 0, 'released', -1, 0, '' }
