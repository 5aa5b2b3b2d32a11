-- SPDX-License-Identifier: Apache-2.0
-- Takes the mutex if it is free, else queues for it, in one step that may be repeated with
-- the same id (S1, S2; rules T1, T3).
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[6] dirty      owner-died mark of robust locks
-- KEYS[7] token      the last fencing token
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] uuid of the client
-- ARGV[4] lease, ms
-- ARGV[5] presence, ms
-- ARGV[6] not-after, server us
-- ARGV[7] 1: try, do not queue
-- ARGV[8] 1: with fencing
-- Returns the common answer; what: held, queued, busy, refused (marked), late, unrecoverable
-- Effects: N with the lease as TTL; or an entry in queue and presence
local N, queue, rqueue, present, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dirty, token = KEYS[6], KEYS[7]
local layout, id, uuid, lease, presence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local not_after, try, fence = tonumber(ARGV[6]), ARGV[7], ARGV[8]
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
if held == 0 and fence == '0' and now <= not_after and string.byte(id, -1) ~= 107
  and call('EXISTS', queue, rqueue, cancelled, dirty) == 0 then
  if string.byte(id, -1) > 57 and string.find(id, ':%a%d+%l*b') then
    call('SET', dirty, id .. '#1', 'EX', 604800)
  end
  call('HSET', N, id, '1', 'mode', 'rlock:mutex', 'since', string.format('%.0f', now))
  call('PEXPIRE', N, lease)
  return { now, tonumber(lease), 0, 0, 'held', tonumber(lease), 0, '' }
end
--include answer
--include token
--include robust
--include telling
--include asking
local left = call('PTTL', N)
local told = known(left)
if told then return told end
if held == 0 then return take('rlock:mutex') end
local flags = waiting() + foreign()
if try == '1' then
  wanted()
  return { now, left, flags, 0, 'busy', -1, 0, '' }
end
local ticket = queue_up(queue)
if flags % 2 == 0 then flags = flags + 1 end
return { now, left, flags, 0, 'queued', -1, tonumber(ticket), '' }
