-- SPDX-License-Identifier: Apache-2.0
-- Joins a condition, in one step that may be repeated with the same id. The caller holds its mutex,
-- and gives it up when the answer is "waiting" (V1).
-- KEYS[1] cond         waiting ids by ticket, signalled ids by the end of their time
-- KEYS[2] condpresent  client uuid -> alive until, ms
-- KEYS[3] condleft     ids and clients that may no longer join -> until, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the wait
-- ARGV[3] uuid of the client
-- ARGV[4] presence, ms
-- ARGV[5] not-after, server us
-- ARGV[6] 1: an earlier request of this id may be on its way
-- ARGV[7] life of a marker, ms
-- ARGV[8] ids that have returned: without the uuid, a blank after each
-- ARGV[9] ids that were given up, likewise
-- Returns the common answer; what: waiting (and the ticket), woken, gone (woken, too), late
-- Effects: an entry in cond and condpresent; signals of ids that were given up or are overdue wake
-- the next waiters, who get messages
-- rule: V1, V6
local cond, condpresent, condleft = KEYS[1], KEYS[2], KEYS[3]
local layout, id, uuid, presence = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local not_after, again, life = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
local done, left = ARGV[8], ARGV[9]
--include cond
--include cond_join
call('ZCARD', cond)
call('ZCARD', condpresent)
call('ZCARD', condleft)
settle(done, left, life)
local what, ticket = join(true)
if type(what) == 'table' then return what end
return { now, -2, 0, 0, what, -1, ticket, '' }
