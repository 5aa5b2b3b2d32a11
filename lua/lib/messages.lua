-- SPDX-License-Identifier: Apache-2.0
-- A holder may request a message for when another client wants the lock (flag k of its id, or by a
-- renewal). The value of its field in N says so: 1 no, 2 yes, 3 sent. So there is one message for
-- each hold, however many clients queue, try or poll (rule K2).
-- Needs: call, N, layout, cancelled, now, lib/mailbox.lua.
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
-- Whether ours stand back now, as far as this script has looked.
local back = false
-- Whether a lock that is free is left to strangers (lib/turn.lua). id: the first of ours that wait,
-- if this script releases the lock, and then sends strangers their message. The id's client gets
-- one, too, so that it looks again until the turn is over. used: a stranger has the lock.
-- rule: T14
local function stands_back(id, uuid, used)
  if not strangers_listen() then return false end
--include turn
  if used then
    local till = turn_score('!')
    return till > 0 and till % 1 == 0 and turn_write('!', math.min(till, clock_ms + 5) + 0.5)
  end
  back = turn_goes_on()
  if back or not id then return back end
  back = turn_begins(true)
  if back then post(uuid, '1 lost ' .. id .. ' ' .. N) end
  return back
end
