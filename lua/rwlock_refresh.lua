-- SPDX-License-Identifier: Apache-2.0
-- A client's poll for its waiters of one lock, readers and writers: proves their presence, hands
-- over what became free without a release, and replies what happened to each. Never queues, takes
-- or extends for an id (T2). If it grants to one of the named ids, only the reply says so (T11,
-- W16).
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
-- ARGV[2] uuid of the client
-- ARGV[3] presence, ms
-- ARGV[4] kind of the lock: preferred mode
-- ARGV[5] ticket in queue to continue after, or 0
-- ARGV[6] ticket in rqueue to continue after, or 0
-- ARGV[7] waiting acquisitions: their ids without the uuid, a blank after each
-- Returns the common answer; what: held, queued, gone, unrecoverable
-- Effects: presence; a holder that requested it gets a message about a client that waits for the
-- free lock without an id; N and readers written for the next holders, which get messages unless
-- they are among the ids
-- rule: T2
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token, keepers = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local layout, uuid, presence, prefer = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local after, rafter, names = ARGV[5], ARGV[6], ARGV[7]
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include mailbox
--include robust
--include messages
--include settle
--include presence
--include wanted
--include keepers
check_all_types()
local ids, where, queued = {}, {}, false
for part in string.gmatch(names, '%S+') do
  local id = uuid .. ':' .. part
  ids[#ids + 1] = id
  where[#ids] = string.match(part, '^%d+:%d+:[rR]') and rqueue or queue
  if call('ZSCORE', where[#ids], id) then
    queued = true
    named[id] = true
  end
end
if queued then
  local lost = presence_lost()
  call('PEXPIRE', queue, '60000')
  call('PEXPIRE', rqueue, '60000')
  stay(lost)
  redis.pcall('ZREMRANGEBYSCORE', present, '-inf', '(' .. text(clock))
end
local lost = spoilt()
go_on(after, rafter)
local more, rmore = settle(nil, false)
if held > 0 and names == '' and after == '0' and rafter == '0' then
  wanted()
  if call('HGET', N, 'mode') == 'rlock:read' then tell_keepers() end
end
local pttl, flags = call('PTTL', N), waiting()
if pttl ~= -2 then flags = flags + foreign() end
if queued and not hears(uuid) then flags = flags + 16 end
local answer = { now, pttl, flags, more }
for i, id in ipairs(ids) do
  local what, left, how, own = 'queued', -1, nil, ''
  local ticket = call('ZSCORE', where[i], id)
  if not ticket then
    left, how = owns(id)
    -- because of a PERSIST
    if how == 'write' and left == -1 then
      left = tonumber(string.match(id, ':%a(%d+)%l*$'))
      call('PEXPIRE', N, left)
      answer[2] = left
    end
    what = left and 'held' or 'gone'
    if left then
      own = token_there()
      answer[3] = flags_for(call('HGET', N, id), answer[3])
    end
  end
  if lost and what ~= 'held' then what = 'unrecoverable' end
  local at = #answer
  answer[at + 1], answer[at + 2], answer[at + 3] = what, left or -1, tonumber(ticket or 0)
  answer[at + 4] = own
end
if answer[2] == -1 then answer[2] = with_end(-1) end
answer[#answer + 1] = rmore
return answer
