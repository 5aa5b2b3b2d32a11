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
-- ARGV[9] 1: writes in any case when the id holds the lock (rule P11); absent: does not
-- Returns the common answer; what: held, queued, busy, refused (marked), late, unrecoverable
-- Effects: N with the lease as TTL; or an entry in queue and presence
local N, queue, rqueue, present, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local dirty, token = KEYS[6], KEYS[7]
local layout, id, uuid, lease, presence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local not_after, try, fence = tonumber(ARGV[6]), ARGV[7], ARGV[8]
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
-- Short path for a free lock without waiters. Writing a number as text costs as much as a command.
local plain = fence == '0' and string.byte(id, -1) ~= 107
local there = now <= not_after and (plain or try == '1')
  and call('EXISTS', N, queue, rqueue, cancelled, dirty) or -1
if there == 0 and plain then
  call('HSET', N, id, '1', 'mode', 'rlock:mutex', 'since',
    t[1] .. string.sub('000000' .. t[2], -6))
  -- If an ACL refuses the command, the first write is undone and the refusal is reported: none of
  -- our keys stays without an end.
  if redis.pcall('PEXPIRE', N, lease) ~= 1 then
    call('DEL', N)
    return call('PEXPIRE', N, lease)
  end
  if string.byte(id, -1) > 57 and string.find(id, ':%a%d+%l*b')
    and redis.pcall('SET', dirty, id .. '#1', 'EX', '604800').err then
    call('DEL', N)
    return call('SET', dirty, id, 'XX')
  end
  lease = tonumber(lease)
  return { now, lease, 0, 0, 'held', lease, 0, '' }
end
--include busy
local left, confirm = call('PTTL', N), ARGV[9]
local held = left == -2 and 0 or 1
--include answer
--include token
--include mailbox
--include robust
--include messages
--include asking
local flags = waiting()
local told = known(left, flags)
if told then return told end
left = with_end(left)
if held == 0 then return take('rlock:mutex', flags) end
flags = flags + foreign()
if try == '1' then
  wanted()
  return { now, left, flags, 0, 'busy', -1, 0, '' }
end
local ticket = queue_up(queue, flags)
if flags % 2 == 0 then flags = flags + 1 end
return { now, left, flags, 0, 'queued', -1, tonumber(ticket), '' }
