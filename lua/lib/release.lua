-- SPDX-License-Identifier: Apache-2.0
-- The release of an exclusive lock: see mutex_release.lua.
-- Needs: the names that mutex_release.lua gives to keys and arguments.
local call = redis.call
local mine = call('HEXISTS', N, id)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
if mine == 1 and life == 0 and (how == '' or how == 'clean')
  and call('EXISTS', queue, rqueue) == 0 then
  local own = how == 'clean' and call('GET', dirty)
  call('DEL', N)
  if own and string.sub(own, 1, #id + 1) == id .. '#' then call('DEL', dirty) end
--include announce
  return { now, -2, 0, 0, 'released', -1, 0, '' }
end
--include answer
--include token
--include mailbox
--include robust
--include messages
--include handover
--include mark
check_types(life > 0)
local what = 'released'
local free = true
local told = how == 'unused' and died() > 0
if mine == 1 then
  call('DEL', N)
else
  what = 'notmine'
  call('ZREM', queue, id)
  call('ZREM', rqueue, id)
  free = call('EXISTS', N) == 0
end
if life > 0 then mark(id, life) end
if how ~= '' and unmark(id, how, mine == 1, late == '1', told) then
  unrecoverable = true
  call_waiters()
end
local granted, more = nil, 0
if free then granted, more = handover('0') end
if granted then return { now, more, waits, 0, what, -1, 0, '' } end
if free and mine == 1 then
--include announce
end
return { now, call('PTTL', N), waiting(), more, what, -1, 0, '' }
