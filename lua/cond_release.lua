-- SPDX-License-Identifier: Apache-2.0
-- Joins a condition and releases its mutex, in one step that may be repeated with the same two ids.
-- Joins only while the mutex has its id: if an earlier request did both, and the wait was woken since,
-- a repeated one must not wait again (V1).
-- KEYS[1] cond         waiting ids by ticket, signalled ids by the end of their time
-- KEYS[2] condpresent  client uuid -> alive until, ms
-- KEYS[3] condleft     ids and clients that may no longer join -> until, ms
-- KEYS[4] @N           the mutex; this and the following are of the mutex
-- KEYS[5] @queue       exclusive waiters by ticket
-- KEYS[6] @rqueue      waiting readers by ticket
-- KEYS[7] @present     client uuid -> alive until, ms
-- KEYS[8] @readers     reader -> its lease end, ms
-- KEYS[9] @cancelled   ids that may no longer acquire -> until, ms
-- KEYS[10] @dirty      owner-died mark of robust locks
-- KEYS[11] @token      the last fencing token
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the wait
-- ARGV[3] uuid of the client
-- ARGV[4] presence, ms
-- ARGV[5] not-after, server us
-- ARGV[6] life of a marker of the condition, ms
-- ARGV[7] ids that have returned: without the uuid, a blank after each
-- ARGV[8] ids that were given up, likewise
-- ARGV[9] id of the acquisition of the mutex
-- ARGV[10] life of its marker, ms; 0: none
-- ARGV[11] channel where Redisson's waiters listen
-- ARGV[12] robust locks: clean, spoilt (not consistent), died, unused (never entered)
-- ARGV[13] robust locks: 1: finally unlocked, although the lease may have ended since
-- Returns the answer of the mutex's release, then of the wait; what: waiting (and the ticket), woken,
-- gone (woken, too; or the mutex was not the caller's, and nothing joined), late (nothing was done)
-- Effects: those of cond_wait and of mutex_release
-- rule: V1
local cond, condpresent, condleft = KEYS[1], KEYS[2], KEYS[3]
local layout, wait_id, uuid, presence = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local not_after, marker_life, done, left = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
local id, life, channel, how, late = ARGV[9], tonumber(ARGV[10]), ARGV[11], ARGV[12] or '', ARGV[13]
local mutex, queue, rqueue, present, readers = KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local cancelled, dirty, token = KEYS[9], KEYS[10], KEYS[11]
local function wait()
  local id, again, life = wait_id, '0', marker_life
--include cond
--include cond_join
  call('ZCARD', cond)
  call('ZCARD', condpresent)
  call('ZCARD', condleft)
  -- The release must not fail behind the join for want of the right types.
  local mine = call('HEXISTS', mutex, ARGV[9]) == 1
  if call('EXISTS', queue, rqueue) > 0 then
    for _, key in ipairs({ queue, rqueue, present, readers, cancelled }) do call('ZCARD', key) end
    call('GET', dirty)
    call('GET', token)
  end
  settle(done, left, life)
  local what, ticket = join(mine)
  return now, what, ticket
end
local at, what, ticket = wait()
if type(what) == 'table' then return what end
if what == 'late' then return { at, -2, 0, 0, 'notmine', -1, 0, '', what, -1, 0, '' } end
local function give_up()
  local N = mutex
--include release
end
local answer = give_up()
if answer.err then return answer end
answer[9], answer[10], answer[11], answer[12] = what, -1, ticket, ''
return answer
