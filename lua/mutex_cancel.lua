-- SPDX-License-Identifier: Apache-2.0
-- Cancels a waiter: takes it out of the queue, or replies that it holds the lock already; never
-- both. Later acquires of this id are refused (rules T3, T7, T8).
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
-- ARGV[3] life of the marker to leave, ms
-- Returns the common answer; what: removed, yours
-- Effects: the queue entry is gone; marker; a free lock is handed over
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token = KEYS[6], KEYS[7], KEYS[8]
local layout, id, life = ARGV[1], ARGV[2], tonumber(ARGV[3])
--include cancel
