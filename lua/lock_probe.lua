-- SPDX-License-Identifier: Apache-2.0
-- Asks those who have a lock what they wait for, to find deadlocks: sends each client with a hold
-- of the lock one message that names its holds. Writes nothing.
-- KEYS[1] N        the lock
-- KEYS[2] readers  reader -> its lease end, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] uuid of the asking client, whose own holds the reply has
-- ARGV[3] how many readers with a live end to pass over
-- ARGV[4] the message in front of its list of holds: initiator, nonce, hops, victim, digest, path
-- Returns {server us, PTTL of N, how many ids were looked at, the ids of the asking client}
-- Effects: none but the messages
-- rule: E3
local N, readers = KEYS[1], KEYS[2]
local layout, own, skip, head = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local call = redis.call
--include mailbox
local t = call('TIME')
local ids = {}
local mode = call('HGET', N, 'mode')
if mode == 'rlock:read' then
  local clock = string.format('%.0f', math.floor((t[1] * 1000000 + t[2]) / 1000))
  ids = call('ZRANGEBYSCORE', readers, clock, '+inf', 'LIMIT', skip, 256)
elseif mode and string.sub(mode, 1, 6) == 'rlock:' then
  local fields = call('HGETALL', N)
  for i = 1, #fields, 2 do ids[#ids + 1] = fields[i] end
end
local order, of = {}, {}
local reply = { t[1] * 1000000 + t[2], call('PTTL', N), #ids }
for _, id in ipairs(ids) do
  local uuid = #id < 128 and string.match(id, '^([^:]+):%d+:%d+:%a%d+%l*$')
  if uuid == own then
    reply[#reply + 1] = id
  elseif uuid then
    if not of[uuid] then
      of[uuid] = {}
      order[#order + 1] = uuid
    end
    table.insert(of[uuid], id)
  end
end
for _, uuid in ipairs(order) do
  post(uuid, '1 probe ' .. head .. ' ' .. #of[uuid] .. ' ' .. table.concat(of[uuid], ' ') .. ' ' .. N)
end
return reply
