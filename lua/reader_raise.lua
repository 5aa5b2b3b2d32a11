-- SPDX-License-Identifier: Apache-2.0
-- Raises the ends of a client's readers, with the key of the readers and no other (see
-- lock_raise.lua). Never revives an end that has passed. Only the lock's own key says whether the
-- reading goes on: reading_raise.lua asks before and after (P20; rules W2, W4, W5).
-- KEYS[1] readers  reader -> its lease end, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] uuid of the client
-- ARGV[3] at most 256 acquisitions: id without the uuid, blank, lease in ms, letters, blank, and so
-- on; the letters mean nothing here
-- Returns the common answer, without a token, and of the readers' key in place of N; what: held, gone
-- Effects: ends in readers; its TTL in any case (P11)
-- rule: P20, W4, W5, P11
local readers, layout, uuid, names = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local call = redis.call
local count = call('ZCARD', readers)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local clock = math.floor(now / 1000)
-- outlives the lock's own key by 60 s (W7), which is at another node, perhaps
local life = math.max(call('PTTL', readers), 60000)
-- a first write that is permitted when memory is full
if count > 0 then call('PEXPIRE', readers, life) end
local answer = { now, count > 0 and life or -2, 0, 0 }
for part, ttl in string.gmatch(names, '(%S+) (%d+)%l* ') do
  local id, what, left = uuid .. ':' .. part, 'gone', -1
  local till = tonumber(call('ZSCORE', readers, id) or 0)
  if till >= clock then
    what, left = 'held', math.max(till - clock, tonumber(ttl))
    if clock + left > till then
      call('ZADD', readers, string.format('%.0f', clock + left), id)
    end
    life = math.max(life, left + 60000)
  end
  local at = #answer
  answer[at + 1], answer[at + 2], answer[at + 3], answer[at + 4] = what, left, 0, ''
end
if count > 0 then call('PEXPIRE', readers, life) end
return answer
