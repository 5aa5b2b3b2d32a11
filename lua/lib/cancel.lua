-- SPDX-License-Identifier: Apache-2.0
-- The cancel of a waiter for an exclusive lock: see mutex_cancel.lua.
-- Needs: the names that mutex_cancel.lua gives to keys and arguments.
-- rule: T8
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include mailbox
--include robust
--include messages
--include handover
--include mark
check_types(true)
call('ZREM', queue, id)
call('ZREM', rqueue, id)
mark(id, life)
local value = held > 0 and call('HGET', N, id)
if value then
  local left = call('PTTL', N)
  return { now, left, flags_for(value, waiting()) + died(), 0, 'yours', left, 0, token_there() }
end
local granted, more = nil, 0
if held == 0 then granted, more = handover('0') end
if granted then more = 0 end
return { now, call('PTTL', N), waiting(), more, 'removed', -1, 0, '' }
