-- SPDX-License-Identifier: Apache-2.0
-- Shows the holders of a lock and a page of its waiters. Writes nothing.
-- KEYS[1] N        the lock
-- KEYS[2] queue    exclusive waiters by ticket
-- KEYS[3] rqueue   waiting readers by ticket
-- KEYS[4] present  client uuid -> alive until, ms
-- KEYS[5] readers  reader -> its lease end, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] most waiters of each queue to show
-- ARGV[3] ticket to continue after in queue, or 0
-- ARGV[4] ticket to continue after in rqueue, or 0
-- Returns {server us, PTTL of N, fields of N, readers and ends, waiters and tickets, waiting readers
-- and tickets, alive-until of each waiter in the same order}
-- Effects: none
-- Members longer than ours are cut, and more than 16 MiB is an error: whatever other programs write
-- to the keys, a client can read the reply.
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local layout, count, after, rafter = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local room = 16777216
local function short(list)
  for i, text in ipairs(list) do
    if #text > 512 then list[i] = string.sub(text, 1, 512) end
    room = room - #list[i] - 16
    if room < 0 then error('the keys of the lock hold too much for one', 0) end
  end
  return list
end
local function page(key, from)
  return short(call('ZRANGEBYSCORE', key, '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', '0', count))
end
local waiters, rwaiters = page(queue, after), page(rqueue, rafter)
local alive = {}
local others = call('ZSCORE', present, '*') or '0'
for _, list in ipairs({ waiters, rwaiters }) do
  for i = 1, #list, 2 do
    local uuid = string.match(list[i], '^([^:]+)')
    alive[#alive + 1] = uuid and call('ZSCORE', present, uuid) or others
  end
end
local reading = {}
if call('HGET', N, 'mode') == 'rlock:read' then
  reading = call('ZRANGE', readers, '0', '-1', 'WITHSCORES')
end
return { now, call('PTTL', N), short(call('HGETALL', N)), short(reading), waiters, rwaiters, alive }
