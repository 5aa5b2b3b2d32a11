-- SPDX-License-Identifier: Apache-2.0
-- A holder may request a message for when another client wants the lock (flag k of its id, or by a
-- renewal). The value of its field in N says so: 1 no, 2 yes, 3 sent. So there is one message for
-- each hold, however many clients queue, try or poll (rule K2).
-- Needs: call, N, layout, lib/mailbox.lua.
local function tells(id) return string.byte(id, -1) > 57 and string.find(id, ':%a%d+%l*k') ~= nil end
-- Whether Redisson's channel has subscribers: its waiters, which are in no queue. The count of the
-- first waiter's mailbox has counted them, too (lib/mailbox.lua).
-- rule: K10
local function strangers_listen()
  if strangers == nil or (strangers == 0 and layout ~= '1') then
    local name = channel
      or 'redisson_lock__channel:' .. (string.find(N, '{', 1, true) and N or '{' .. N .. '}')
    strangers = strangers or redis.pcall('PUBSUB', 'NUMSUB', name)[2] or 0
    if strangers == 0 and layout ~= '1' then
      strangers = redis.pcall('PUBSUB', 'SHARDNUMSUB', name)[2] or 0
    end
  end
  return strangers > 0
end
-- The value for a new holder, and its flags (K4). flags: who else waits.
-- rule: K2, K4
local function value_for(id, flags)
  if not tells(id) then return '1', flags end
  if flags > 0 then return '3', flags end
  if strangers_listen() then return '3', 32 end
  return '2', 64
end
-- The flags for a holder that has this value already.
local function flags_for(value, flags)
  if value == '2' then return flags + 64 end
  if value == '3' and flags % 4 == 0 then return flags + 32 end
  return flags
end
