-- SPDX-License-Identifier: Apache-2.0
-- THE hand-over of a free lock to the exclusive waiters in `queue`, whatever their type:
-- the letter in a waiter's id says which (doc/design/protocol.md). In the order of tickets:
-- who is not present is dropped; who is present but has no listener, or is of a type unknown
-- here, is stepped over and keeps its ticket; the first other one is written as holder with
-- the TTL that its id names, and only then told (T5). Who listens is asked before: a PUBLISH
-- goes to the replicas, too, and whoever listens there would believe a grant that is undone
-- here, at 0 receivers (where the ACL does not let us ask). When the key of presence
-- was lost (see lib/presence.lua), who listens is present. Looks at 64 waiters at most.
-- `named`: ids whose own request this is; they need no message.
-- Needs: call, N, queue, rqueue, present, readers, dirty, token, t, now, waiting, token_next,
-- lib/robust.lua and lib/telling.lua.
--include whole
local modes = { m = 'rlock:mutex', f = 'rlock:fair', w = 'rlock:write' }
local ms = now / 1000
local others = nil
local deaf = {}
local named = {}
local unrecoverable = nil -- as check_types has seen it
local waits = nil         -- who waited behind the last one who was granted the lock
local seen, from, looked = 0, '-inf', '0'
-- What an id says, if its client is alive: its uuid, letter, and the TTL of a grant.
local function alive(id)
  -- longer than any of ours: no id, and none that messages are to carry
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
-- Whether somebody listens to the client's mailbox; asked once for each. Where the ACL does
-- not let us ask, the PUBLISH will tell.
-- rule: L2
local function hears(uuid)
  if deaf[uuid] == nil then
    local heard = redis.pcall('PUBSUB', 'NUMSUB', 'rlock:client:' .. uuid)
    deaf[uuid] = heard[2] == 0
  end
  return not deaf[uuid]
end
-- The next who may be granted the lock: id, ticket, uuid, letter, TTL; else nil and the
-- ticket to go on after (0: none left). Who is not listening is not meant.
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
-- Writes it as holder and tells it. False: nobody heard it, and it waits again as before (of what
-- it took, a token is gone, and a writer's trace of the reading that ended).
-- rule: T5, W6
local function grant(id, ticket, uuid, letter, ttl)
  local own, marks = '', robust(id)
  local fenced, before, dead = letter ~= string.lower(letter), nil, nil
  -- a first write that is allowed when memory is full; while a token or a mark may still be
  -- refused, the waiter keeps its place
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
    -- who has no place that ends asks anew
    if redis.pcall('ZADD', queue, ticket, id) == 1
      and redis.pcall('PEXPIRE', queue, '60000') ~= 1 then
      call('ZREM', queue, id)
    end
  end
  -- what an ACL refuses is undone, and told as it is
  whole(function()
    if letter == 'w' or letter == 'W' then call('DEL', readers) end
    write_holder(id, value, modes[string.lower(letter)], own, dead)
    -- last (T5)
    call('PEXPIRE', N, ttl)
  end, take_back, N)
  if named[id] then return true end
  if own == '' then own = '0' end
  local heard = redis.pcall('PUBLISH', 'rlock:client:' .. uuid, '1 grant '
    .. flags + (dead and 8 or 0) .. ' ' .. own .. ' 1 1 ' .. id .. ' ' .. ticket .. ' ' .. N)
  if type(heard) == 'number' and heard > 0 then return true end
  take_back()
  deaf[uuid] = true
  return false
end
-- Returns the id granted and its TTL, or nil and the ticket to go on after (0: none left).
-- Nobody gets a lock that is not recoverable.
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
-- What the hand-over writes to, looked at before the first write: Lua has no rollback. marks: a
-- marker is left, too.
-- rule: W27
local function check_types(marks)
  waiting()
  call('ZCARD', present)
  call('ZCARD', readers)
  if marks then call('ZCARD', cancelled) end
  unrecoverable = call('GET', dirty) == 'not recoverable'
  token_last()
end
