-- SPDX-License-Identifier: Apache-2.0
-- Hands a free lock to the exclusive waiters in `queue`, whatever their type: the letter in a
-- waiter's id names it (doc/design/protocol.md). In the order of tickets: a waiter that is not
-- present is dropped. A waiter that is present but has no subscribed mailbox, or is of an unknown
-- type, is passed over and keeps its ticket. The first other waiter is written as holder, with the
-- TTL in its id, and only then gets its message (T5). Subscribers are counted before that: replicas
-- get a PUBLISH, too, and a subscriber there would believe a grant that is undone here because it
-- had 0 receivers (as happens where the ACL forbids the count). If the key of presence was lost
-- (see lib/presence.lua), a waiter with a subscribed mailbox counts as present. Looks at 64 waiters
-- at most.
-- `named`: the ids of this request; they need no message.
-- Needs: call, N, queue, rqueue, present, readers, dirty, token, t, now, waiting, token_next,
-- lib/mailbox.lua, lib/robust.lua and lib/messages.lua.
--include whole
local modes = { m = 'rlock:mutex', f = 'rlock:fair', w = 'rlock:write' }
local ms = now / 1000
local others = nil
local deaf = {}
local named = {}
local unrecoverable = nil -- as check_types has seen it
local waits = nil         -- who waited behind the last one who was granted the lock
local seen, from, looked = 0, '-inf', '0'
-- The uuid, letter and grant TTL of an id, if its client is alive.
local function alive(id)
  -- Longer than all our ids: not an id, and not to be copied into messages.
  if #id > 127 then return nil end
  local uuid, letter, ttl = string.match(id, '^([^:]+):%d+:%d+:(%a)(%d+)%l*$')
  local till = uuid and call('ZSCORE', present, uuid)
  if uuid and not till then
    if others == nil then
      others = call('ZCARD', present) == 0 and ms or call('ZSCORE', present, '*')
    end
    till = others
  end
  if till and tonumber(till) >= ms and tonumber(ttl) >= 1 and #ttl <= 9 then
    return uuid, letter, ttl
  end
end
-- Whether the client's mailbox has a subscriber; counted once for each client. Where the ACL
-- forbids the count, the PUBLISH shows it.
-- rule: L2
local function hears(uuid)
  if deaf[uuid] == nil then
    deaf[uuid] = is_deaf(uuid)
  end
  return not deaf[uuid]
end
-- The next waiter that may get the lock: id, ticket, uuid, letter, TTL; else nil and the ticket to
-- continue after (0: none left). Passes over waiters without a subscriber.
-- rule: T11, W10
local function candidate()
  while true do
    local entry = call('ZRANGEBYSCORE', queue, from, '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
    local id, ticket = entry[1], entry[2]
    if not id then return nil, 0 end
    if seen == 64 then return nil, tonumber(looked) end
    seen, looked, from = seen + 1, ticket, '(' .. ticket
    local uuid, letter, ttl = alive(id)
    if not uuid then
      call('ZREM', queue, id)
    elseif modes[string.lower(letter)]
      and (named[id] or hears(uuid)) then
      return id, ticket, uuid, letter, ttl
    end
  end
end
-- Writes the id as holder and sends its message. False: the message had no receiver, and the id
-- waits as before (its token, and a writer's trace of the ended reading, are used up).
-- rule: T5, W6
local function grant(id, ticket, uuid, letter, ttl)
  local own, marks = '', robust(id)
  local fenced, before, dead = letter ~= string.lower(letter), nil, nil
  -- A first write that is permitted when memory is full. A token or a mark may still be refused;
  -- then the waiter keeps its place.
  if fenced or marks then call('PEXPIRE', queue, '60000') end
  if fenced then own = token_next() end
  if marks then
    before, dead = mark_before(id)
    if set_mark(id, dead).err then return call('SET', dirty, id, 'XX') end
  end
  call('ZREM', queue, id)
  waits = waiting()
  local value, flags = value_for(id, waits)
  local function take_back()
    drop(N)
    if marks then restore_mark(before) end
    -- an id whose place has no end must send its request again
    if redis.pcall('ZADD', queue, ticket, id) == 1
      and redis.pcall('PEXPIRE', queue, '60000') ~= 1 then
      call('ZREM', queue, id)
    end
  end
  -- What an ACL refuses is undone and reported.
  whole(function()
    if letter == 'w' or letter == 'W' then call('DEL', readers) end
    write_holder(id, value, modes[string.lower(letter)], own, dead)
    -- last (T5)
    call('PEXPIRE', N, ttl)
  end, take_back, N)
  if named[id] then return true end
  if own == '' then own = '0' end
  local heard = post(uuid, '1 grant '
    .. flags + (dead and 8 or 0) .. ' ' .. own .. ' 1 1 ' .. id .. ' ' .. ticket .. ' ' .. N)
  if type(heard) == 'number' and heard > 0 then return true end
  take_back()
  deaf[uuid] = true
  return false
end
-- Returns the granted id and its TTL, or nil and the ticket to continue after (0: none left). A
-- lock that is not recoverable is granted to no id.
-- rule: L1
local function handover(after)
  if unrecoverable ~= false and spoilt() then return nil, 0 end
  if after ~= '0' then from = '(' .. after end
  while true do
    local id, ticket, uuid, letter, ttl = candidate()
    if not id then return nil, ticket end
    if grant(id, ticket, uuid, letter, ttl) then return id, tonumber(ttl) end
  end
end
-- Checks the types of all keys that the hand-over writes, before the first write: Lua has no
-- rollback. marks: a marker is written, too.
-- rule: W27
local function check_types(marks)
  waiting()
  call('ZCARD', present)
  call('ZCARD', readers)
  if marks then call('ZCARD', cancelled) end
  unrecoverable = call('GET', dirty) == 'not recoverable'
  token_last()
end
