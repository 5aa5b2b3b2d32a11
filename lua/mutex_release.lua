-- SPDX-License-Identifier: Apache-2.0
-- Releases the lock if this acquisition still holds it, and hands it to the next waiter (S2, L1;
-- rules T3, T5, T7). An id that only waits is taken out of the queue.
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] readers    reader -> its lease end, ms
-- KEYS[6] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[7] dirty      owner-died mark of robust locks
-- KEYS[8] token      the last fencing token
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] life of the marker to leave, ms; 0: none
-- ARGV[4] channel where Redisson's waiters listen
-- ARGV[5] robust locks: clean, spoilt (not consistent), died, unused (never entered)
-- ARGV[6] robust locks: 1: finally unlocked, although the lease may have ended since
-- Returns the common answer; what: released, notmine
-- Effects: N deleted, or written for the next holder, which gets a message; message 0 on the
-- channel when no waiter took it; the mark of a robust lock gone, or "not recoverable", and then
-- waiters get a message
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token = KEYS[6], KEYS[7], KEYS[8]
local layout, id, life, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local how, late = ARGV[5] or '', ARGV[6]
--include release
