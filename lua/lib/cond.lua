-- SPDX-License-Identifier: Apache-2.0
-- What all scripts of conditions share: who is the next waiter, how it is woken, and what becomes of
-- signals whose waiters did not return. `cond` has two sorts of entries: a waiting id has its ticket
-- (us) as score; a signalled id has the time (ms) until which its waiter is to say that it has
-- returned. All scores of the first sort are above all of the second.
-- Needs: cond, condpresent, condleft, layout, uuid.
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local ms = math.floor(now / 1000)
-- the name of the condition; lib/mailbox.lua needs it under this name
local N = string.match(cond, '^rlock:{(.*)}:cond$') or string.sub(cond, 8, -6)
--include mailbox
local FIRST_TICKET = 100000000000000
local LIFE = '120000' -- TTL of the keys, ms
local others = nil    -- until when clients without an entry count as present
local deaf = {}       -- by client: whether its mailbox has no subscriber
local dropped = 0     -- how many absent waiters this script has taken out
local told = nil      -- in a list: the caller's own ids that were woken, in place of messages
local function text(number) return string.format('%.0f', number) end
-- The uuid and presence time of an id, if its client is alive.
local function alive(id)
  if #id > 127 then return nil end -- longer than all our ids
  local owner, presence = string.match(id, '^([^:]+):%d+:%d+:c(%d+)%l*$')
  local till = owner and call('ZSCORE', condpresent, owner)
  if owner and not till then
    if others == nil then
      others = call('ZCARD', condpresent) == 0 and ms or call('ZSCORE', condpresent, '*')
    end
    till = others
  end
  if till and tonumber(till) >= ms and #presence <= 9 then return owner, presence end
end
-- Whether the client's mailbox has a subscriber, or the reply tells the client.
local function hears(owner)
  if told and owner == uuid then return true end
  if deaf[owner] == nil then deaf[owner] = is_deaf(owner) end
  return not deaf[owner]
end
-- The next waiter that a signal wakes: the first who is present and whose mailbox has a subscriber,
-- of the first 64; else the first who is present. Takes out who is not present, 64 in all; behind
-- them it returns nil and true.
-- rule: V3
local function candidate()
  local from, seen, first = text(FIRST_TICKET), 0, nil
  while seen < 64 do
    local entry = call('ZRANGEBYSCORE', cond, from, '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
    local id, ticket = entry[1], entry[2]
    if not id then break end
    local owner, presence = alive(id)
    if owner then
      local waiter = { id, ticket, owner, presence }
      if hears(owner) then return waiter end
      first = first or waiter
      seen = seen + 1
    elseif dropped == 64 then
      return first, not first
    else
      call('ZREM', cond, id)
      dropped = dropped + 1
    end
    from = '(' .. ticket
  end
  return first, false
end
-- Tells a waiter, or notes it for the reply. Written before it is sent (T5).
local function tell(owner, count, words)
  post(owner, '1 woken ' .. count .. ' ' .. words .. N)
end
local function note_own(id, ticket)
  told[#told + 1] = string.sub(id, #uuid + 2)
  told[#told + 1] = tonumber(ticket)
end
-- Wakes one waiter. Returns 'woken', 'none' (nobody waits: the signal is gone), or 'more' (the script
-- has taken out as many as it may: another one goes on).
-- rule: V3, V8
local function signal()
  local waiter, more = candidate()
  if not waiter then return more and 'more' or 'none' end
  local id, ticket, owner, presence = unpack(waiter)
  call('ZADD', cond, text(ms + 2 * presence), id)
  if told and owner == uuid then
    note_own(id, ticket)
  else
    tell(owner, 1, id .. ' ' .. ticket .. ' ')
  end
  return 'woken'
end
-- The signal of an id whose waiter does not use it goes to the next one. If that is for another
-- script to do, the id stays, and is overdue.
local function pass_on(id)
  if signal() == 'more' then
    call('ZADD', cond, '1', id)
  else
    call('ZREM', cond, id)
  end
end
-- Whether the score is that of a signalled id.
local function is_signalled(score) return score and tonumber(score) < FIRST_TICKET end
-- Writes a marker: the id, or all ids of the client, may not join any more. `cancelled`: the marker of
-- a cancel, which a repeated cancel recognizes.
-- rule: V6
local function mark(id, life, cancelled)
  redis.pcall('ZREMRANGEBYSCORE', condleft, '-inf', '(' .. text(ms))
  call('ZADD', condleft, text(ms + life) .. (cancelled and '.5' or ''), id)
  call('PEXPIRE', condleft, text(math.max(life, LIFE)))
end
-- The types of all keys, before the first write; and a first write that is permitted when memory is
-- full, so that the others are.
local function begin()
  call('ZCARD', cond)
  call('ZCARD', condpresent)
  call('ZCARD', condleft)
  call('PEXPIRE', cond, LIFE)
end
-- Takes out the acknowledged ids (`done`) and those that their waiters gave up (`left`; with an
-- exclamation mark: a join may still be on its way, and finds a marker that lives for `life` ms).
-- Then drops overdue ids, 16 at most. Signals of the last two kinds go to the next waiters. All ids
-- come without the uuid, with a blank after each.
-- rule: V4, V18
local function settle(done, left, life)
  local ids = {}
  for name in string.gmatch(done, '%S+') do ids[#ids + 1] = uuid .. ':' .. name end
  if #ids > 0 then call('ZREM', cond, unpack(ids)) end
  for name, marked in string.gmatch(left, '([^ !]+)(!?)') do
    local id = uuid .. ':' .. name
    if is_signalled(call('ZSCORE', cond, id)) then
      pass_on(id)
    else
      call('ZREM', cond, id)
    end
    if marked == '!' then mark(id, life, true) end
  end
  local overdue = call('ZRANGEBYSCORE', cond, '-inf', '(' .. text(ms), 'LIMIT', '0', '16')
  for _, id in ipairs(overdue) do pass_on(id) end
end
-- The client is present for `presence` ms, as in lib/presence.lua. lost: the key was lost while
-- others wait.
-- rule: V12
local function stay(presence, lost)
  if lost then call('ZADD', condpresent, text(ms + 11000), '*') end
  call('ZADD', condpresent, text(ms + presence), uuid)
  call('PEXPIRE', condpresent, LIFE)
end
local function presence_lost()
  return call('ZCARD', condpresent) == 0 and call('EXISTS', cond) > 0
end
-- The score of an id, or nil; whether a marker refuses it.
local function is_marked(id)
  return call('EXISTS', condleft) == 1
    and (call('ZSCORE', condleft, id) or call('ZSCORE', condleft, uuid)) and true
end
