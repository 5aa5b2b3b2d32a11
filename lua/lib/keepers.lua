-- SPDX-License-Identifier: Apache-2.0
-- A client that lets its threads read without the server, or retains a read hold, wants a message
-- about the first writer (flag k of the id, as in lib/messages.lua): `keepers` has its reader with
-- the lease end in server ms (rule K15). A reader that gets the message is removed, so that it is
-- one message; while a writer waits, no reader is let in.
-- Needs: call, N, keepers, clock, text, channel_heard, lib/mailbox.lua.
-- Whether the reader, whose lease has `left` ms, will get the message.
-- rule: K15
local function enlist(id, left)
  if type(redis.pcall('ZADD', keepers, text(clock + left), id)) ~= 'number' then return false end
  local ends = redis.pcall('PTTL', keepers)
  if type(ends) == 'number' and (ends >= left + 60000
    or redis.pcall('PEXPIRE', keepers, text(left + 60000)) == 1) then
    return true
  end
  redis.pcall('ZREM', keepers, id)
  return false
end
-- The flags for readers that want the message; list: ids and what is left of each, alternating.
local function flags_for_readers(list, flags)
  if not list[1] or flags % 2 == 1 then return flags end
  if channel_heard() then return flags + 32 end
  local all = true
  for i = 1, #list, 2 do all = enlist(list[i], list[i + 1]) and all end
  return all and flags + 64 or flags
end
-- For an arriving writer: one message for each client, for the first 64 live readers. The others
-- find out by their next request.
-- rule: K15
local function tell_keepers()
  local list = call('ZRANGEBYSCORE', keepers, text(clock), '+inf', 'LIMIT', 0, 64)
  if not list[1] then return end
  call('ZREM', keepers, unpack(list))
  local done = {}
  for _, id in ipairs(list) do
    local uuid = string.match(id, '^([^:]+):%d+:%d+:%a%d+%l*$')
    if uuid and #id < 128 and not done[uuid] then
      done[uuid] = true
      post(uuid, '1 wanted ' .. id .. ' ' .. N)
    end
  end
end
