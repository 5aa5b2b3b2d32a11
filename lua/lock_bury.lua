-- SPDX-License-Identifier: Apache-2.0
-- Releases what a dead client has under this name, and nothing of any other client (G11): its hold,
-- its places in the queues, its presence. Refuses its requests that are still on their way (G12).
-- The mark of a robust lock stays if the client was inside (G13). The next waiter gets a lock that
-- becomes free. Beside the named ids it looks at 256 readers and 1024 waiters.
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
-- ARGV[2] uuid of the dead client
-- ARGV[3] life of its requests that may be on their way, ms
-- ARGV[4] channel where Redisson's waiters listen
-- ARGV[5] kind of the lock: preferred mode
-- ARGV[6] its acquisitions: for each its id without the uuid, and whether a thread was inside: 0
-- never, 1 yes, 2 it had left; a blank after each word
-- Returns the common answer; what: released, gone (it held nothing)
-- Effects: N deleted, shortened to the last reader's end, or written for the next holders, which
-- get messages; message 0 on the channel when no waiter took it; the marker of the uuid
-- rule: G11, G12, G13
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token, keepers = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local layout, uuid, life, channel, prefer = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local names = ARGV[6]
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
--include mark
check_all_types(true)
local own = uuid .. ':'
local function is_its(id) return string.sub(id, 1, #own) == own end
-- The uuid alone is not an id: with it the first write is always a ZREM, which is permitted when
-- memory is full.
local ids, inside = { uuid }, {}
for id, what in string.gmatch(names, '(%S+) (%d)') do
  ids[#ids + 1] = own .. id
  inside[own .. id] = what
end
-- Removes its members: the named ones, and those among the first `most` from `from` on. Returns how
-- many there were.
local function take_out(key, from, most)
  local count = 0
  for i = 1, #ids, 1000 do
    count = count + call('ZREM', key, unpack(ids, i, math.min(i + 999, #ids)))
  end
  for _, id in ipairs(call('ZRANGEBYSCORE', key, from, '+inf', 'LIMIT', '0', most)) do
    if is_its(id) then count = count + call('ZREM', key, id) end
  end
  return count
end
-- its field of N, named or not; where the ACL forbids the look, a named one
local victim = nil
local fields = held > 0 and redis.pcall('HGETALL', N) or {}
for _, field in ipairs(fields.err and ids or fields) do
  if is_its(field) and call('HEXISTS', N, field) == 1 then victim = field end
end
local told_of_death = died() > 0
local what, last = 'gone', nil
take_out(queue, '-inf', '1024')
take_out(rqueue, '-inf', '1024')
if victim then
  call('DEL', N)
  what, last = 'released', 'write'
elseif held > 0 and call('HGET', N, 'mode') == 'rlock:read' and call('EXISTS', readers) == 1
  and call('ZREVRANGE', readers, '0', '0') and take_out(readers, text(clock), '256') > 0 then
  what = 'released'
  local top = call('ZREVRANGE', readers, '0', '0', 'WITHSCORES')[2]
  if top and tonumber(top) >= clock then
    fit()
  else
    if type(redis.pcall('DEL', N, readers, keepers)) ~= 'number' then
      call('PEXPIRE', N, '0')
      return call('DEL', N)
    end
    last = 'read'
  end
end
take_out(keepers, text(clock), '256')
-- not removed: if it were the last member, every client with a subscribed mailbox would count as
-- present (lib/presence.lua)
if call('ZSCORE', present, uuid) then call('ZADD', present, '0', uuid) end
if tonumber(call('ZSCORE', cancelled, uuid) or 0) < clock + life then mark(uuid, life) end
local marked = call('GET', dirty)
marked = marked and is_its(marked) and string.match(marked, '^(.*)#%d+$')
if marked then
  local how = inside[marked]
  if how == '2' or (how == '0' and victim == marked and not told_of_death) then
    call('DEL', dirty)
  end
end
local more, rmore = settle(last, false)
if last and call('EXISTS', N) == 0 then
--include announce
end
return told(what, nil, 0, more, rmore)
