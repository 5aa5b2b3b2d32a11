-- SPDX-License-Identifier: Apache-2.0
-- Takes the fair lock if it is free and no waiter comes before the caller, else queues for it, in
-- one step that may be repeated with the same id (S1, S2, L5; rules T1, T3). A free lock with a
-- queue goes to the first live waiter; the caller is the last in the queue. So no waiter is
-- overtaken.
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
-- ARGV[3] uuid of the client
-- ARGV[4] lease, ms
-- ARGV[5] presence, ms
-- ARGV[6] not-after, server us
-- ARGV[7] 1: try, do not queue
-- ARGV[8] 1: with fencing
-- ARGV[9] ticket after which to look for the first waiter (of a try that continues), or 0
-- ARGV[10] 1: writes in any case when the id holds the lock (rule P11); absent: does not
-- Returns the common answer; what: held, queued, busy, refused (marked), late, unrecoverable
-- Effects: N with the lease as TTL, or written for the first waiter, which gets a message; or an
-- entry in queue and presence
-- rule: L5
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token = KEYS[6], KEYS[7], KEYS[8]
local layout, id, uuid, lease, presence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local not_after, try, fence, after = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9]
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
-- Short path for a free lock without waiters. Writing a number as text costs as much as a command.
local plain = fence == '0'
local there = now <= not_after and (plain or try == '1')
  and call('EXISTS', N, queue, rqueue, cancelled, dirty) or -1
if there == 0 and plain then
  call('HSET', N, id, '1', 'mode', 'rlock:fair', 'since',
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
local left, confirm = call('PTTL', N), ARGV[10]
local held = left == -2 and 0 or 1
--include answer
--include token
--include mailbox
--include robust
--include messages
--include asking
--include handover
local flags = waiting()
local told = known(left, flags)
if told then return told end
left = with_end(left)
if held == 0 and flags % 2 == 0 then return take('rlock:fair', flags) end
if held > 0 and try == '1' then
  wanted()
  return { now, left, flags + foreign(), 0, 'busy', -1, 0, '' }
end
if held == 0 then check_types() end
local ticket = '0'
if try ~= '1' then ticket = queue_up(queue, flags) end
local granted, more = nil, 0
if held == 0 then
  named[id] = true
  granted, more = handover(after)
  if granted == id then
    -- 0: the grant has expired since, on a server that stood still
    left = call('PEXPIRE', N, lease) * tonumber(lease)
    return { now, left, waiting() + died(), 0, 'held', left, 0, token_there() }
  end
  if granted then
    more = 0
  elseif try == '1' and more == 0 then
    return take('rlock:fair', waiting())
  end
  left = call('PTTL', N)
  flags = waiting()
elseif flags % 2 == 0 then
  flags = flags + 1
end
if granted or held > 0 then flags = flags + foreign() end
if try == '1' then return { now, left, flags, more, 'busy', -1, 0, '' } end
return { now, left, flags, more, 'queued', -1, tonumber(ticket), '' }
