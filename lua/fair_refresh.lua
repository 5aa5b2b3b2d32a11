-- SPDX-License-Identifier: Apache-2.0
-- A client's poll for its waiters of one lock: proves their presence, hands over a lock that became
-- free without a release, and replies what happened to each. Never queues or takes the lock for an
-- id that is not queued (T2). If it grants to one of the named ids, only the reply says so (T11).
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] readers    reader -> its lease end, ms
-- KEYS[6] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[7] dirty      owner-died mark of robust locks
-- KEYS[8] token      the last fencing token
-- ARGV[1] layout of keys and arguments
-- ARGV[2] uuid of the client
-- ARGV[3] presence, ms
-- ARGV[4] ticket to continue after, or 0
-- ARGV[5] waiting acquisitions: their ids without the uuid, a blank after each
-- Returns the common answer; what: held, queued, gone, unrecoverable
-- Effects: presence; N written for the next holder, which gets a message unless it is among the ids
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token = KEYS[6], KEYS[7], KEYS[8]
local layout, uuid, presence, after = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local names = ARGV[5]
--include refresh
