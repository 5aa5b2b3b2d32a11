-- SPDX-License-Identifier: Apache-2.0
-- Takes the lock from the holder that the caller has seen, never from a later one (T10), clears the
-- owner-died mark, tells the holder and hands over.
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] readers    reader -> its lease end, ms
-- KEYS[6] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[7] dirty      owner-died mark of robust locks
-- KEYS[8] token      the last fencing token
-- ARGV[1] layout of keys and arguments
-- ARGV[2] the holder's field
-- ARGV[3] its "since", or "" when it has none (Redisson)
-- ARGV[4] channel on which Redisson's waiters listen
-- Returns the common answer; what: released, gone
-- Effects: N deleted, or written for the next holder; messages
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token = KEYS[6], KEYS[7], KEYS[8]
local layout, holder, since, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local call = redis.call
local held = call('HEXISTS', N, holder)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include handover
check_types()
if held == 0 or (call('HGET', N, 'since') or '') ~= since then
  return { now, call('PTTL', N), waiting(), 0, 'gone', -1, 0, '' }
end
call('DEL', N)
call('DEL', dirty)
local uuid = string.match(holder, '^([^:]+):%d+:%d+:%a%d+%l*$')
if uuid then
  redis.pcall('PUBLISH', 'rlock:client:' .. uuid, '1 lost ' .. holder .. ' ' .. N)
end
local granted, more = handover('0', nil)
if granted then more = 0 else redis.pcall('PUBLISH', channel, '0') end
return { now, call('PTTL', N), waiting(), more, 'released', -1, 0, '' }
