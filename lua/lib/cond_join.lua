-- SPDX-License-Identifier: Apache-2.0
-- Joins the condition, once for each id. Returns what became of the id (waiting, woken, gone, late)
-- and its ticket or 0.
-- Needs: lib/cond.lua, id, presence, not_after, again, life.
-- rule: V1, V6
local function join(may)
  local score = call('ZSCORE', cond, id)
  if again == '1' then
    -- as it joins: no later duplicate of an earlier request joins any more
    local marked = is_marked(id)
    if not marked then mark(id, life, false) end
    may = may and not marked
  elseif not score then
    may = may and not is_marked(id)
  end
  if is_signalled(score) then return 'woken', 0 end
  if score then return 'waiting', tonumber(score) end
  if not may then return 'gone', 0 end
  if now > not_after then
    -- the request is to be made again: its own marker must not refuse that
    if again == '1' then call('ZREM', condleft, id) end
    return 'late', 0
  end
  local lost = presence_lost()
  local ticket = t[1] .. string.sub('000000' .. t[2], -6)
  local last = call('ZREVRANGE', cond, '0', '0', 'WITHSCORES')[2]
  if last and tonumber(last) >= now then ticket = text(last + 1) end
  call('ZADD', cond, ticket, id)
  if redis.pcall('PEXPIRE', cond, LIFE) ~= 1 then
    call('ZREM', cond, id)
    return call('PEXPIRE', cond, LIFE)
  end
  stay(presence, lost)
  return 'waiting', tonumber(ticket)
end
