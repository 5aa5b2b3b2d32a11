-- SPDX-License-Identifier: Apache-2.0
-- Raises the lease of the acquisition that holds the lock; never shortens it (T4), never
-- makes a key, never touches somebody else's (S2).
-- KEYS[1] N       the lock
-- KEYS[2] queue   exclusive waiters by ticket
-- KEYS[3] rqueue  waiting readers by ticket
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] lease, ms
-- Returns the common answer; what: held, gone
-- Effects: TTL of N
local N, queue, rqueue = KEYS[1], KEYS[2], KEYS[3]
local layout, id, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
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
