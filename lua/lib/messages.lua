-- SPDX-License-Identifier: Apache-2.0
-- A holder may request a message for when another client wants the lock (flag k of its id, or by a
-- renewal). The value of its field in N says so: 1 no, 2 yes, 3 sent. So there is one message for
-- each hold, however many clients queue, try or poll (rule K2).
-- Needs: call, N, layout.
local function tells(id) return string.byte(id, -1) > 57 and string.find(id, ':%a%d+%l*k') ~= nil end
-- Whether Redisson's channel has subscribers: its waiters, which are in no queue.
-- rule: K10
local function channel_heard()
  local name = string.find(N, '{', 1, true) and N or '{' .. N .. '}'
  local heard = redis.pcall('PUBSUB', 'NUMSUB', 'redisson_lock__channel:' .. name)
  if heard[2] == 0 and layout ~= '1' then
    heard = redis.pcall('PUBSUB', 'SHARDNUMSUB', 'redisson_lock__channel:' .. name)
  end
  return heard[2] ~= nil and heard[2] ~= 0
end
-- The value for a new holder, and its flags (K4). flags: who else waits.
-- rule: K2, K4
local function value_for(id, flags)
  if not tells(id) then return '1', flags end
  if flags > 0 then return '3', flags end
  if channel_heard() then return '3', 32 end
  return '2', 64
end
-- The flags for a holder that has this value already.
local function flags_for(value, flags)
  if value == '2' then return flags + 64 end
  if value == '3' and flags % 4 == 0 then return flags + 32 end
  return flags
end
