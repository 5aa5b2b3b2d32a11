-- SPDX-License-Identifier: Apache-2.0
-- Raises the lease of the acquisition that holds the lock. Never shortens it (T4), never creates a
-- key, never touches another acquisition's (S2).
-- KEYS[1] N       the lock
-- KEYS[2] queue   exclusive waiters by ticket
-- KEYS[3] rqueue  waiting readers by ticket
-- KEYS[4] dirty   owner-died mark of robust locks
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] lease, ms
-- ARGV[4] channel where Redisson's waiters listen
-- ARGV[5] 1: send the holder a message about later waiters
-- ARGV[6] 1: writes in any case (rule P11); absent: only if the lease is raised
-- Returns the common answer; what: held, gone
-- Effects: TTL of N, and of the mark, which is written again if it was lost
local N, queue, rqueue, dirty = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local layout, id, lease, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local tell, more, token, number = ARGV[5], '0', nil, 0
local confirm = ARGV[6]
--include renew
