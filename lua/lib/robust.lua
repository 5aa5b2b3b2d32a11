-- SPDX-License-Identifier: Apache-2.0
-- The owner-died mark of robust locks: `dirty` names the holder that has not released cleanly,
-- `<id>#1` (#2: a holder that got EOWNERDEAD), or says "not recoverable". Ids with the flag b are
-- robust. A holder that takes the lock while there is a mark learns so from the field `died` of N,
-- as long as it holds; its own mark then stands for both. 7 days: by then somebody has looked.
-- Needs: call, N, dirty, lib/mailbox.lua.
local function robust(id)
  return string.byte(id, -1) > 57 and string.find(id, ':%a%d+%l*b') ~= nil
end
local function spoilt()
  local lost = call('GET', dirty) == 'not recoverable'
  -- as long as a client wants the lock
  if lost then call('EXPIRE', dirty, '604800') end
  return lost
end
-- The flag for a holder that gets EOWNERDEAD.
local function died() return call('HEXISTS', N, 'died') == 1 and 8 or 0 end
-- The mark before a robust id is granted the lock, and whether it means a death: the id's own mark,
-- from a grant that has expired, only if that grant had EOWNERDEAD (#2).
local function mark_before(id)
  local before = call('GET', dirty)
  local dead = before ~= false
  if dead and string.sub(before, 1, #id + 1) == id .. '#' then
    dead = string.sub(before, -2) == '#2'
  end
  return before, dead
end
-- Writes the mark. The result has `err` if an ACL refuses it.
local function set_mark(id, dead)
  return redis.pcall('SET', dirty, id .. (dead and '#2' or '#1'), 'EX', '604800')
end
-- The grant is undone: restores the mark.
local function restore_mark(before)
  if before then
    call('SET', dirty, before, 'EX', '604800')
  else
    call('DEL', dirty)
  end
end
-- Ends a holder's mark after N was deleted. how: clean; spoilt (unlocked but not consistent); died;
-- unused (never entered: the earlier mark stays). mine: N was still the id's; late: it was not, but
-- the caller's unlock had succeeded; told: it had been granted with EOWNERDEAD. Returns whether the
-- lock is not recoverable now.
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
-- Wakes waiters to look again: one message for each client, for the first 1024 in each queue.
local function call_waiters()
  local called = {}
  for _, line in ipairs({ queue, rqueue }) do
    for _, id in ipairs(call('ZRANGE', line, '0', '1023')) do
      local uuid, letter = string.match(id, '^([^:]+):%d+:%d+:(%a)')
      if uuid and #id < 128 and not called[uuid .. letter] then
        called[uuid .. letter] = true
        post(uuid, '1 lost ' .. id .. ' ' .. N)
      end
    end
  end
end
