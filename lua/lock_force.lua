-- SPDX-License-Identifier: Apache-2.0
-- Takes the lock from the holder or the readers that the caller has seen, never from later ones
-- (T10), clears the mark of a robust lock, sends them messages and hands over. On a free lock it
-- only clears the mark, if the lock was free or has become free.
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
-- ARGV[2] the holder's field, or "" for a reading, or when the lock was free
-- ARGV[3] its "since", or "" when it has none (Redisson)
-- ARGV[4] channel where Redisson's waiters listen
-- Returns the common answer; what: released, gone
-- Effects: N deleted, or written for the next holder; messages
-- rule: T10
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token, keepers = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local layout, holder, since, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local prefer = ''
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
check_all_types()
local reads = call('HGET', N, 'mode') == 'rlock:read'
local mark = held == 0 and call('GET', dirty)
if mark and (holder == '' and since == '' or mark == 'not recoverable'
  or string.sub(mark, 1, #holder + 1) == holder .. '#') then
  call('DEL', dirty)
  local more, rmore = settle(nil, false)
  return told('released', nil, 0, more, rmore)
end
local there = held > 0 and (holder == '' and reads or call('HEXISTS', N, holder) == 1)
if not there or (call('HGET', N, 'since') or '') ~= since then return told('gone') end
local victims = { holder }
if reads then victims = call('ZREVRANGE', readers, '0', '255') end
call('DEL', N)
call('DEL', readers, keepers)
call('DEL', dirty)
for _, id in ipairs(victims) do
  local uuid = string.match(id, '^([^:]+):%d+:%d+:%a%d+%l*$')
  if uuid and #id < 128 then post(uuid, '1 lost ' .. id .. ' ' .. N) end
end
local more, rmore = settle(reads and 'read' or 'write', false)
if call('EXISTS', N) == 0 then
--include announce
end
return told('released', nil, 0, more, rmore)
