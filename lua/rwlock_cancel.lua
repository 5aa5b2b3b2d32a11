-- SPDX-License-Identifier: Apache-2.0
-- Cancels a waiter: takes it out of the queues, or replies that it holds the lock already; never
-- both. Later acquires of this id are refused (rules T3, T7, T8). When a writer leaves, those
-- behind it may enter (W12).
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket, and the bar
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] readers    reader -> its lease end, ms
-- KEYS[6] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[7] dirty      owner-died mark of robust locks
-- KEYS[8] token      the last fencing token
-- KEYS[9] keepers    readers that want a message about a writer -> lease end, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] life of the marker to leave, ms
-- ARGV[4] kind of the lock: preferred mode
-- Returns the common answer; what: removed, yours
-- Effects: the queue entry is gone; marker; a free lock is handed over
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token, keepers = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local layout, id, life, prefer = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include mailbox
--include robust
--include messages
--include settle
--include mark
check_all_types(true)
call('ZREM', queue, id)
call('ZREM', rqueue, id)
mark(id, life)
local left = owns(id)
local more, rmore = settle(nil, false)
return told(left and 'yours' or 'removed', left, 0, more, rmore)
