-- SPDX-License-Identifier: Apache-2.0
-- Gives the lock back, if it is still this acquisition's, and hands it to the next waiter
-- (S2, L1; rules T3, T5, T7). For an id that only waits: takes it out of the queue.
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
-- ARGV[4] channel on which Redisson's waiters listen
-- Returns the common answer; what: released, notmine
-- Effects: N deleted, or written for the next holder, who is told; message 0 on the channel when
-- nobody took it
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token = KEYS[6], KEYS[7], KEYS[8]
local layout, id, life, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local call = redis.call
local mine = call('HEXISTS', N, id)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
if mine == 1 and life == 0 and call('EXISTS', queue, rqueue) == 0 then
  call('DEL', N)
  redis.pcall('PUBLISH', channel, '0')
  return { now, -2, 0, 0, 'released', -1, 0, '' }
end
--include answer
--include token
--include handover
--include mark
check_types()
local what = 'released'
local free = true
if mine == 1 then
  call('DEL', N)
else
  what = 'notmine'
  call('ZREM', queue, id)
  call('ZREM', rqueue, id)
  free = call('EXISTS', N) == 0
end
if life > 0 then mark(id, life) end
local granted, more = nil, 0
if free then granted, more = handover('0', nil) end
if granted then more = 0 elseif free and mine == 1 then redis.pcall('PUBLISH', channel, '0') end
return { now, call('PTTL', N), waiting(), more, what, -1, 0, '' }
