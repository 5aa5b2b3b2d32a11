-- SPDX-License-Identifier: Apache-2.0
-- THE hand-over of a free lock to the exclusive waiters in `queue`, whatever their type:
-- the letter in a waiter's id says which (doc/DESIGN.md, section 4). In the order of tickets:
-- who is not present is dropped; who is present but has no listener, or is of a type unknown
-- here, is stepped over and keeps its ticket; the first other one is written as holder with
-- the TTL that its id names, and only then told (T5). The PUBLISH is the listener probe
-- itself, once for each client; at 0 receivers the write is undone. When the key of presence
-- was lost (see lib/presence.lua), who listens is present. Looks at 64 waiters at most.
-- `mine`: ids whose own request this is; they need no message.
-- Returns the id granted and its TTL, or nil and the ticket to go on after (0: none left).
-- Needs: call, N, queue, rqueue, present, readers, token, t, now, waiting, token_next.
local function handover(after, mine)
  local modes = { m = 'rlock:mutex', f = 'rlock:fair', w = 'rlock:write' }
  local ms = now / 1000
  local others = call('ZCARD', present) == 0 and ms or call('ZSCORE', present, '*')
  local deaf = {}
  local from = '-inf'
  if after ~= '0' then from = '(' .. after end
  local ticket = '0'
  for seen = 1, 65 do
    local entry = call('ZRANGEBYSCORE', queue, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    local id = entry[1]
    if not id then return nil, 0 end
    if seen == 65 then return nil, tonumber(ticket) end
    ticket = entry[2]
    from = '(' .. ticket
    local uuid, letter, ttl = string.match(id, '^([^:]+):%d+:%d+:(%a)(%d+)%l*$')
    local alive = uuid and (call('ZSCORE', present, uuid) or others)
    if not alive or tonumber(alive) < ms or tonumber(ttl) < 1 or #ttl > 9 then
      call('ZREM', queue, id)
    elseif modes[string.lower(letter)] and (not deaf[uuid] or mine and mine[id]) then
      local own = ''
      if letter ~= string.lower(letter) then
        -- a first write that is allowed when memory is full; while a token may still be
        -- refused, the waiter keeps its place
        call('PEXPIRE', queue, 60000)
        own = token_next()
      end
      call('ZREM', queue, id)
      if letter == 'w' or letter == 'W' then call('DEL', readers) end
      call('HSET', N, id, '1', 'mode', modes[string.lower(letter)], 'since',
        string.format('%.0f', now))
      if own ~= '' then call('HSET', N, 'token', own) end
      call('PEXPIRE', N, ttl)
      if mine and mine[id] then return id, tonumber(ttl) end
      local base = own
      if base == '' then base = '0' end
      local heard = redis.pcall('PUBLISH', 'rlock:client:' .. uuid, '1 grant ' .. waiting()
        .. ' ' .. base .. ' 1 1 ' .. id .. ' ' .. ticket .. ' ' .. N)
      if type(heard) == 'number' and heard > 0 then return id, tonumber(ttl) end
      call('DEL', N)
      call('ZADD', queue, ticket, id)
      call('PEXPIRE', queue, 60000)
      deaf[uuid] = true
    end
  end
end
-- What the hand-over writes to, looked at before the first write: Lua has no rollback.
local function check_types()
  waiting()
  call('ZCARD', present)
  call('ZCARD', readers)
  call('ZCARD', cancelled)
  token_last()
end
