-- SPDX-License-Identifier: Apache-2.0
-- Takes a free lock to write, or queues for it, in one step that may be repeated with the same id
-- (S1, L6; rules T1, T3, W10, W26). Overtakes no waiter. O(log n).
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
-- ARGV[3] uuid of the client
-- ARGV[4] lease, ms
-- ARGV[5] presence, ms
-- ARGV[6] not-after, server us
-- ARGV[7] 1: try, do not queue
-- ARGV[8] 1: with fencing
-- ARGV[9] kind of the lock: preferred mode
-- ARGV[10] ticket in queue after which a hand-over continues, or 0
-- ARGV[11] ticket in rqueue after which it continues, or 0
-- ARGV[12] 1: writes in any case when the id holds the lock (rule P11); absent: does not
-- Returns the common answer; what: held, queued, busy, refused (marked), late,
-- unrecoverable
-- Effects: N with the lease as TTL, or an entry in queue and presence; a free lock is handed over
local N, queue, rqueue, readers, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6]
local id, lease, fence = ARGV[2], ARGV[4], ARGV[8]
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local not_after = tonumber(ARGV[6])
-- short path for a free lock without waiters
if fence == '0' and string.byte(id, -1) ~= 107
  and call('EXISTS', N, queue, rqueue, readers, cancelled, KEYS[7]) == 0 and now <= not_after then
  call('HSET', N, id, '1', 'mode', 'rlock:write', 'since',
    t[1] .. string.sub('000000' .. t[2], -6))
  -- If an ACL refuses the command, the first write is undone and the refusal is reported: none of
  -- our keys stays without an end.
  if redis.pcall('PEXPIRE', N, lease) ~= 1 then
    call('DEL', N)
    return call('PEXPIRE', N, lease)
  end
  lease = tonumber(lease)
  return { now, lease, 0, 0, 'held', lease, 0, '', 0 }
end
local present, dirty, token, keepers, layout = KEYS[4], KEYS[7], KEYS[8], KEYS[9], ARGV[1]
local uuid, presence, try, prefer = ARGV[3], ARGV[5], ARGV[7], ARGV[9]
local after, rafter, confirm = ARGV[10], ARGV[11], ARGV[12]
local held = call('HLEN', N)
--include answer
--include token
--include mailbox
--include robust
--include messages
--include asking
--include behind
local queued = behind(queue, 1)
if queued then return queued end
--include settle
--include keepers
-- Held by a grant or by an earlier request: sets the whole lease.
-- rule: P11
local function entered()
  local left = call('PTTL', N)
  if left < tonumber(lease) then
    call('PEXPIRE', N, lease)
    left = tonumber(lease)
  elseif confirm == '1' then
    left = left + 1
    call('PEXPIRE', N, left)
  end
  return told('held', left)
end
check_all_types()
local left, how = owns(id)
if how == 'write' then return entered() end
if left then return told('held', left) end
if is_marked() then return told('refused') end
if now > not_after then return told('late') end
if spoilt() then return told('unrecoverable') end
local ticket = call('ZSCORE', queue, id)
if ticket then
  queue_up(queue)
  named[id] = true
end
go_on(after, rafter)
local more, rmore = settle(nil, false)
if ticket then
  if owns(id) then return entered() end
  ticket = call('ZSCORE', queue, id)
end
if ticket then return told('queued', nil, ticket, more, rmore) end
if more == 0 and rmore == 0 and state() == 'free' then
  local answer = take('rlock:write', waiting())
  if not pcall(clear_readers) then
    call('PEXPIRE', N, '0')
    return clear_readers()
  end
  answer[9] = 0
  return answer
end
if try == '1' then
  tell_keepers()
  return told('busy', nil, 0, more, rmore)
end
-- not only for the first in the queue: that one may be of another type, which sends no message
local keep = call('EXISTS', keepers) == 1
ticket = queue_up(queue)
if keep then tell_keepers() end
return told('queued', nil, ticket, more, rmore)
