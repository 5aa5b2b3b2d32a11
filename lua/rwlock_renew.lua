-- SPDX-License-Identifier: Apache-2.0
-- Raises the ends of acquisitions of one client that hold the lock, in whichever mode; never
-- shortens one, never revives one that has passed, never touches another's (S2; rules T4, W2-W5).
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket, and the bar
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] readers    reader -> its lease end, ms
-- KEYS[6] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[7] dirty      owner-died mark of robust locks
-- KEYS[8] token      the last fencing token
-- ARGV[1] layout of keys and arguments
-- ARGV[2] uuid of the client
-- ARGV[3] at most 256 acquisitions: id without the uuid, blank, lease in ms, blank, and so on
-- Returns the common answer; what: held, gone
-- Effects: ends in readers, TTL of N
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token = KEYS[6], KEYS[7], KEYS[8]
local layout, uuid, names = ARGV[1], ARGV[2], ARGV[3]
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include reading
local flags = waiting()
call('ZCARD', readers)
local answer = { now, 0, flags, 0 }
local pttl, reads = call('PTTL', N), call('HGET', N, 'mode') == 'rlock:read'
-- a first write that is allowed when memory is full
if reads then call('PEXPIRE', readers, pttl + 60000) end
for part, ttl in string.gmatch(names, '(%S+) (%d+) ') do
  local id = uuid .. ':' .. part
  local left = owns(id)
  if left and tonumber(ttl) > left then
    left = tonumber(ttl)
    if reads then
      call('ZADD', readers, text(clock + left), id)
    else
      call('PEXPIRE', N, left)
    end
  end
  local at = #answer
  answer[at + 1], answer[at + 2], answer[at + 3] = left and 'held' or 'gone', left or -1, 0
  answer[at + 4] = left and call('HGET', N, 'token') or ''
end
if reads then
  collect()
  if call('EXISTS', readers) == 1 then fit() end
end
answer[2] = call('PTTL', N)
answer[#answer + 1] = 0
return answer
