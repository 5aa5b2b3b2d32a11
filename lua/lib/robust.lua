-- SPDX-License-Identifier: Apache-2.0
-- The owner-died mark of robust locks: `dirty` names the holder that has not released cleanly,
-- `<id>#1` (#2: who had been told of a death), or says "not recoverable". Ids with the flag b are
-- robust. Who takes the lock while
-- there is a mark is told so, by the field `died` of N for as long as he has it; his own mark
-- then stands for both. 7 days: by then somebody has looked.
-- Needs: call, N, dirty.
local function robust(id)
  return string.byte(id, -1) > 57 and string.find(id, ':%a%d+%l*b') ~= nil
end
local function spoilt()
  local lost = call('GET', dirty) == 'not recoverable'
  -- as long as somebody wants it
  if lost then call('EXPIRE', dirty, '604800') end
  return lost
end
-- The flag for a holder who is to be told.
local function died() return call('HEXISTS', N, 'died') == 1 and 8 or 0 end
-- The mark there is, of a lock which is about to be given to a robust id, and
-- whether it tells of a death: his own, of a grant that has lapsed, only if that one did (#2).
local function mark_before(id)
  local before = call('GET', dirty)
  local dead = before ~= false
  if dead and string.sub(before, 1, #id + 1) == id .. '#' then
    dead = string.sub(before, -2) == '#2'
  end
  return before, dead
end
-- Marks it. Its answer has `err` if an ACL refuses that.
local function set_mark(id, dead)
  return redis.pcall('SET', dirty, id .. (dead and '#2' or '#1'), 'EX', '604800')
end
-- It is not given to him after all.
local function restore_mark(before)
  if before then
    call('SET', dirty, before, 'EX', '604800')
  else
    call('DEL', dirty)
  end
end
-- Ends a holder's mark, after N was deleted. how: clean; spoilt (unlocked though not
-- consistent); died; unused (never entered: what was marked before stays). mine: N was still
-- the id's; late: if it was not, its caller was told all the same that he had unlocked it; told:
-- it had been given with the news of a death. Returns whether the lock is not recoverable now.
local function unmark(id, how, mine, late, told)
  local own = call('GET', dirty)
  if not own or string.sub(own, 1, #id + 1) ~= id .. '#' then return false end
  if how == 'unused' then
    if mine and not told then call('DEL', dirty) end
  elseif mine or late then
    if how == 'clean' then call('DEL', dirty) end
    if how == 'spoilt' then
      call('SET', dirty, 'not recoverable', 'EX', '604800')
      return true
    end
  end
  return false
end
-- Who waits is woken to look again: one message for each client, of the first 1024 in each queue.
local function call_waiters()
  local called = {}
  for _, line in ipairs({ queue, rqueue }) do
    for _, id in ipairs(call('ZRANGE', line, '0', '1023')) do
      local uuid, letter = string.match(id, '^([^:]+):%d+:%d+:(%a)')
      if uuid and #id < 128 and not called[uuid .. letter] then
        called[uuid .. letter] = true
        redis.pcall('PUBLISH', 'rlock:client:' .. uuid, '1 lost ' .. id .. ' ' .. N)
      end
    end
  end
end
