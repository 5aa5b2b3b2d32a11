-- SPDX-License-Identifier: Apache-2.0
-- Joins a reading, begins one on a free lock, or queues for the next, in one step that may be
-- repeated with the same id (S1, L6; rules T1, T3, W1-W10, W21, W26). O(log n).
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
-- ARGV[7] 1: try, do not queue; 2: a try for an end of its own beside the hold in ARGV[12], and
-- only while that exists: its reader does not overtake a waiter
-- ARGV[8] 1: with fencing
-- ARGV[9] kind of the lock: preferred mode
-- ARGV[10] ticket in queue after which a hand-over continues, or 0
-- ARGV[11] ticket in rqueue after which it continues, or 0
-- ARGV[12] a read hold of the same client to share, or ""
-- Returns the common answer; what: held, shared, queued, busy, gone, refused (marked), late,
-- unrecoverable
-- Effects: the reader's end, and N's TTL; or an entry in rqueue and presence; a free lock is handed
-- over
-- rule: W21
local N, queue, rqueue, readers, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6]
local id, lease, fence = ARGV[2], ARGV[4], ARGV[8]
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local not_after = tonumber(ARGV[6])
-- Short path for a free lock without waiters. Writing a number as text costs as much as a command.
if fence == '0' and string.byte(id, -1) ~= 107 and ARGV[7] ~= '2'
  and call('EXISTS', N, queue, rqueue, readers, cancelled, KEYS[7]) == 0 and now <= not_after then
  lease = tonumber(lease)
  local till = math.floor(now / 1000) + lease
  local at = till .. ''
  call('ZADD', readers, at, id)
  -- If an ACL refuses the command, the first writes are undone and the refusal is reported: none of
  -- our keys stays without an end.
  if redis.pcall('PEXPIREAT', readers, till + 60000) ~= 1 then
    call('DEL', readers)
    return call('PEXPIREAT', readers, at)
  end
  if type(redis.pcall('HSET', N, 'mode', 'rlock:read', 'since',
    t[1] .. string.sub('000000' .. t[2], -6))) ~= 'number' then
    call('DEL', readers)
    return call('HSET', N, 'mode', 'rlock:read', 'odd')
  end
  call('PEXPIREAT', N, at)
  return { now, lease, 0, 0, 'held', lease, 0, '', 0 }
end
local present, dirty, token, keepers, layout = KEYS[4], KEYS[7], KEYS[8], KEYS[9], ARGV[1]
local uuid, presence, try, prefer = ARGV[3], ARGV[5], ARGV[7], ARGV[9]
local after, rafter, share = ARGV[10], ARGV[11], ARGV[12]
local held = call('HLEN', N)
--include answer
--include token
--include mailbox
--include robust
--include messages
--include asking
--include behind
local queued = behind(rqueue, 2)
if queued then return queued end
--include settle
--include keepers
local more, rmore = 0, 0
local function entered(what, reader, opened)
  -- before N gets its end
  if fence == '1' then reading_token() end
  local was = not opened and call('ZSCORE', readers, reader)
  local left
  whole(function()
    if opened then clear_readers() end
    left = raise(reader, lease)
  end, function()
    if opened then
      drop(N)
      drop(readers)
    elseif not was then
      redis.pcall('ZREM', readers, reader)
    end
  end, opened and N)
  local answer = told(what, left, 0, more, rmore)
  if tells(reader) then answer[3] = flags_for_readers({ reader, left }, answer[3]) end
  return answer
end
check_all_types()
local left, how = owns(id)
if how == 'read' then return entered('held', id) end
if left then return told('held', left) end
if is_marked() then return told('refused') end
if now > not_after then return told('late') end
if spoilt() then return told('unrecoverable') end
if try == '2' and not owns(share) then return told('gone') end
local ticket = call('ZSCORE', rqueue, id)
if ticket then
  queue_up(rqueue)
  named[id] = true
end
go_on(after, rafter)
more, rmore = settle(nil, false)
if ticket then
  if owns(id) then return entered('held', id) end
  ticket = call('ZSCORE', rqueue, id)
end
if ticket then return told('queued', nil, ticket, more, rmore) end
local what = state()
local open = more == 0 and rmore == 0 and what == 'free'
if what == 'read' then
  if prefer == '0' then
    open = true
  else
    if writer == nil and call('EXISTS', queue) == 1 then next_writer() end
    if type(writer) == 'number' then more = writer end
    open = not writer and rmore == 0
  end
end
if open then
  if what == 'free' then
    -- whatever may be refused comes before N exists
    open_read(fence == '1' and token_next())
  else
    collect()
  end
  if what == 'read' and share ~= '' and try ~= '2'
    and tonumber(call('ZSCORE', readers, share) or 0) >= clock then
    return entered('shared', share)
  end
  return entered('held', id, what == 'free')
end
if try == '1' or try == '2' then return told('busy', nil, 0, more, rmore) end
return told('queued', nil, queue_up(rqueue), more, rmore)
