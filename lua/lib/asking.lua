-- SPDX-License-Identifier: Apache-2.0
-- The steps of an acquire that are the same for all types of lock.
-- Needs: call, N, queue, rqueue, present, cancelled, dirty, token, id, uuid, lease, presence,
-- not_after, fence, confirm, held, t, now, waiting, token_next, and lib/messages.lua.
--include presence
--include wanted

-- Whether the id, or all ids of its dead client, may not acquire any more (G12).
-- rule: G12
local function is_marked()
  return call('EXISTS', cancelled) == 1
    and (call('ZSCORE', cancelled, id) or call('ZSCORE', cancelled, uuid)) and true
end
-- The reply when the request is settled: the id holds the lock already, is marked, is late, or the
-- lock is not recoverable; else nil. "Holds it" comes before the marker (T3). A client that waits for
-- replicas has the lease raised, so that the request writes (P11). flags: who waits.
-- rule: T3, P11
local function known(left, flags)
  local value = held > 0 and call('HGET', N, id)
  local lost = spoilt()
  if value then
    flags = flags_for(value, flags)
    if left == -1 then
      call('PEXPIRE', N, lease)
      left = tonumber(lease)
    elseif confirm == '1' then
      left = math.max(left + 1, tonumber(lease))
      call('PEXPIRE', N, left)
    end
    return { now, left, flags + died(), 0, 'held', left, 0, token_there() }
  end
  local what = lost and 'unrecoverable' or nil
  if is_marked() then what = 'refused' end
  if what ~= 'refused' and now > not_after then what = 'late' end
  return what and { now, left, flags, 0, what, -1, 0, '' }
end
-- Takes the free lock for the whole lease; returns the reply. The TTL is the last write to N (T5);
-- if it is refused, the others are undone. flags: who waits.
-- rule: T5
local function take(mode, flags)
  local own, dead = '', false
  local queued = flags % 2 == 1 and call('ZSCORE', queue, id)
  if queued and call('ZCARD', queue) == 1 then flags = flags - 1 end
  local value
  value, flags = value_for(id, flags)
  call('ZCARD', present)
  if fence == '1' then own = token_next() end
  local marks, before = robust(id), nil
  if marks then before, dead = mark_before(id) end
  write_holder(id, value, mode, own, dead)
  if dead then flags = flags + 8 end
  if redis.pcall('PEXPIRE', N, lease) ~= 1 then
    call('DEL', N)
    return call('PEXPIRE', N, lease)
  end
  if marks and set_mark(id, dead).err then
    call('DEL', N)
    return call('SET', dirty, id, 'XX')
  end
  if queued and type(redis.pcall('ZREM', queue, id)) ~= 'number' then
    call('DEL', N)
    if marks then restore_mark(before) end
    return call('ZREM', queue, id)
  end
  return { now, tonumber(lease), flags, 0, 'held', tonumber(lease), 0, own }
end
-- Joins a queue, or keeps the place in it. Returns the ticket, as text. Tickets never repeat.
-- flags: who waits, if known.
local function queue_up(queue, flags)
  local lost = presence_lost()
  local ticket, first, joined = call('ZSCORE', queue, id), false, false
  if not ticket then
    local last = call('ZREVRANGE', queue, '0', '0', 'WITHSCORES')[2]
    ticket = t[1] .. string.sub('000000' .. t[2], -6)
    if last and tonumber(last) >= now then ticket = string.format('%.0f', last + 1) end
    first = (flags or waiting()) % 4 == 0
    call('ZADD', queue, ticket, id)
    joined = true
  end
  if type(redis.pcall('PEXPIRE', queue, '60000')) ~= 'number' then
    if joined then call('ZREM', queue, id) end
    return call('PEXPIRE', queue, '60000')
  end
  stay(lost)
  if first then wanted() end
  return ticket
end
