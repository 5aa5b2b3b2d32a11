-- SPDX-License-Identifier: Apache-2.0
-- What an acquire does with its id, whatever the type of the lock.
-- Needs: call, N, queue, rqueue, present, cancelled, dirty, token, id, uuid, lease, presence,
-- not_after, fence, held, t, now, waiting, token_next.
--include presence

-- The answer when there is nothing to ask: mine already, marked, late, or not recoverable; else
-- nil. "Mine" comes before the marker (T3).
local function known(left)
  local flags = waiting()
  local lost = spoilt()
  if held > 0 and call('HEXISTS', N, id) == 1 then
    if left == -1 then
      call('PEXPIRE', N, lease)
      left = tonumber(lease)
    end
    return { now, left, flags + died(), 0, 'held', left, 0, call('HGET', N, 'token') or '' }
  end
  local what = lost and 'unrecoverable' or nil
  if call('ZSCORE', cancelled, id) then what = 'refused' end
  if what ~= 'refused' and now > not_after then what = 'late' end
  return what and { now, left, flags, 0, what, -1, 0, '' }
end
-- Takes the free lock for the whole lease; the answer. What may be refused comes first, the TTL
-- last: doc/DESIGN.md, section 8, 37.
local function take(mode)
  local own, dead = '', false
  local flags = waiting()
  call('ZCARD', present)
  if fence == '1' then own = token_next() end
  if robust(id) then dead = select(2, mark_holder(id)) end
  call('HSET', N, id, '1', 'mode', mode, 'since', string.format('%.0f', now))
  if fence == '1' then call('HSET', N, 'token', own) end
  if dead then
    call('HSET', N, 'died', '1')
    flags = flags + 8
  end
  call('PEXPIRE', N, lease)
  if flags % 2 == 1 and call('ZREM', queue, id) == 1 then flags = waiting() + died() end
  return { now, tonumber(lease), flags, 0, 'held', tonumber(lease), 0, own }
end
-- Joins a queue, or keeps the place in it; the ticket, as text. Tickets never repeat.
local function queue_up(queue)
  local lost = presence_lost()
  local ticket = call('ZSCORE', queue, id)
  if not ticket then
    local last = call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2]
    ticket = now
    if last and tonumber(last) >= now then ticket = tonumber(last) + 1 end
    ticket = string.format('%.0f', ticket)
    call('ZADD', queue, ticket, id)
  end
  call('PEXPIRE', queue, 60000)
  stay(lost)
  return ticket
end
