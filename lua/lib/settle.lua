-- SPDX-License-Identifier: Apache-2.0
-- The hand-over of the read-write lock, on top of the common one: phase-fair. Writing and reading
-- alternate (W11): after a reading the next writer, after a writing all readers queued by then. The
-- bar, the member ~ of rqueue, limits which readers may still enter a reading that could not let in
-- at once all readers queued when it began (W9). Grants to 256 readers at most, with one message
-- for each client, and looks at 64 writers at most.
-- `prefer`: 0 readers, 1 or 2 writers, else neither.
-- Needs: what lib/handover.lua and lib/reading.lua need, and both of them; prefer; keepers; id,
-- where something is held.
--include handover
--include reading
local rfrom, rlooked = '-inf', '0'
-- A hand-over that continues after these tickets.
local function go_on(after, rafter)
  if after ~= '0' then from, looked = '(' .. after, after end
  if rafter ~= '0' then rfrom, rlooked = '(' .. rafter, rafter end
end
-- The tickets to continue after; `found`: that of a writer that must be found again. While one
-- queue is not finished, the other position stays: if each script began it again, the two might
-- never end together.
-- rule: W9
local function both(more, rmore, found)
  if found then
    more = rmore > 0 and found - 1 or 0
  elseif rmore == 0 and more > 0 then
    rmore = tonumber(rlooked)
  elseif more == 0 and rmore > 0 then
    more = tonumber(looked)
  end
  return more, rmore
end
-- Makes readers wait as before; places: tickets and ids, alternating. Where an ACL forbids an end
-- for the key, they get no place, and send their requests again.
local function put_back(places)
  if type(redis.pcall('ZADD', rqueue, unpack(places))) ~= 'number' then return end
  if redis.pcall('PEXPIRE', rqueue, '60000') == 1 then return end
  for i = 2, #places, 2 do call('ZREM', rqueue, places[i]) end
end
-- Sends the messages for the admitted readers: one for each client. Readers without a receiver are
-- put back with their tickets (W17). Returns how many were.
-- rule: W17
local function tell_readers(groups, order, own)
  local undone = 0
  for _, uuid in ipairs(order) do
    local parts = groups[uuid]
    local heard = post(uuid, '1 grant ' .. waiting() .. ' '
      .. own .. ' 0 ' .. #parts / 2 .. ' ' .. table.concat(parts, ' ') .. ' ' .. N)
    if type(heard) ~= 'number' or heard == 0 then
      deaf[uuid] = true
      local places = {}
      for i = 1, #parts, 2 do
        call('ZREM', readers, parts[i])
        places[i], places[i + 1] = parts[i + 1], parts[i]
        undone = undone + 1
      end
      put_back(places)
    end
  end
  return undone
end
-- Lets in the queued readers with tickets up to `upto` (nil: none). Returns how many, and the
-- ticket to continue after (0: none left).
-- rule: W9, W26
local function grant_readers(upto)
  if not upto then return 0, 0 end
  local list = call('ZRANGEBYSCORE', rqueue, rfrom, upto, 'WITHSCORES', 'LIMIT', '0', '258')
  local ends, out, groups, order, fenced = {}, {}, {}, {}, false
  local places = {}
  local kept, met, more = rfrom ~= '-inf', 0, 0
  for i = 1, #list, 2 do
    local id, ticket = list[i], list[i + 1]
    if met == 256 and id ~= '~' then
      more = tonumber(rlooked)
      break
    end
    if id ~= '~' then
      met, rlooked = met + 1, ticket
      local uuid, letter, ttl = alive(id)
      if not uuid then
        out[#out + 1] = id
      elseif string.lower(letter) == 'r' and (named[id] or hears(uuid)) then
        fenced = fenced or letter == 'R'
        ends[#ends + 1] = text(clock + ttl)
        ends[#ends + 1] = id
        places[#places + 1] = ticket
        places[#places + 1] = id
        out[#out + 1] = id
        if not named[id] then
          if not groups[uuid] then
            groups[uuid] = {}
            order[#order + 1] = uuid
          end
          local parts = groups[uuid]
          parts[#parts + 1] = id
          parts[#parts + 1] = ticket
        end
      else
        kept = true
      end
    end
  end
  if fenced then call('PEXPIRE', rqueue, '60000') end
  local own = '0'
  local opened = call('EXISTS', N) == 0
  if fenced then own = opened and token_next() or reading_token() end
  if out[1] then call('ZREM', rqueue, unpack(out)) end
  local count = #ends / 2
  if count > 0 then
    whole(function()
      if opened then
        open_read(fenced and own)
        clear_readers()
      end
      call('ZADD', readers, unpack(ends))
      fit()
    end, function()
      if opened then
        drop(N)
        drop(readers)
      else
        for i = 2, #ends, 2 do redis.pcall('ZREM', readers, ends[i]) end
      end
      put_back(places)
    end, opened and N)
    local undone = tell_readers(groups, order, own)
    if undone > 0 then
      count, kept = count - undone, true
      fit()
    end
  end
  if kept or more > 0 then
    call('ZADD', rqueue, upto, '~')
    call('PEXPIRE', rqueue, '60000')
  else
    call('ZREM', rqueue, '~')
  end
  return count, more
end
local function highest() return call('ZREVRANGE', rqueue, '0', '0', 'WITHSCORES')[2] end
local function bar() return call('ZSCORE', rqueue, '~') or nil end
-- The next live writer with a subscribed mailbox. `writer`: whether there is one, or the ticket to
-- continue after; nil until it was looked for.
local writer = nil
-- rule: W10
local function next_writer()
  local id, ticket, uuid, letter, ttl = candidate()
  writer = id ~= nil or ticket > 0 and ticket
  return id, ticket, uuid, letter, ttl
end
-- A later script knows by this what has ended, although the reading is gone (W7).
-- rule: W7
local function leave_trace(last, more)
  if last == 'read' and more > 0 and call('EXISTS', readers) == 0 then
    call('ZADD', readers, '0', '~')
    if redis.pcall('PEXPIRE', readers, '60000') ~= 1 then call('ZREM', readers, '~') end
  end
end
-- A reading; joining: waiting readers may join past a waiting writer.
-- rule: W10, W12
local function settle_reading(joining)
  local id, more = nil, 0
  if not joining then
    -- its own request does not let a writer close a reading: its mailbox must have a subscriber
    -- (W10)
    local asking = named
    named = {}
    id, more = next_writer()
    named = asking
  end
  local upto = highest()
  if id or more > 0 then upto = bar() end
  local count, rmore = grant_readers(upto)
  return both(more, rmore, id and more)
end
-- A free lock: `last` is what has ended, a reading or a writing.
-- rule: W11, W12, W14
local function settle_free(last)
  local id, ticket, uuid, letter, ttl = next_writer()
  local open_to = nil
  while true do
    local more = not id and ticket or 0
    local writer_next = (id or more > 0)
      and (last == 'read' or prefer == '1' or prefer == '2')
    local upto = highest()
    if writer_next then upto = bar() end
    local count, rmore = 0, 0
    if upto and upto ~= open_to then
      open_to = upto
      count, rmore = grant_readers(upto)
      if count > 0 then
        -- they have begun a reading, which the requesting writer does not close
        if writer_next and rmore == 0 and id and named[id] and not hears(uuid) then
          return settle_reading(false)
        end
        return both(writer_next and more or 0, rmore, id and ticket)
      end
    end
    if not id or rmore > 0 then
      leave_trace(last, more + rmore)
      return both(more, rmore, id and ticket)
    end
    if grant(id, ticket, uuid, letter, ttl) then return 0, 0 end
    id, ticket, uuid, letter, ttl = next_writer()
  end
end
-- `last`: what the caller has ended, so that N is free; or nil. joining: waiting readers may join
-- past a waiting writer. Returns the tickets to continue after in both queues, or 0.
-- rule: W13
local function settle(last, joining)
  local waits = waiting()
  if waits == 0 or (unrecoverable ~= false and spoilt()) then return 0, 0 end
  local now_in, ended = 'free', nil
  if not last then now_in, ended = state() end
  if now_in == 'held' then return 0, 0 end
  if now_in == 'free' then
    last = last or ended or 'write'
    if waits > 1 then return settle_free(last) end
    -- only writers
    local id, more = handover('0')
    if id then more = 0 end
    leave_trace(last, more)
    return more, 0
  end
  if waits == 1 then return 0, 0 end
  return settle_reading(joining)
end
-- Checks the types of all keys that the hand-over and its messages write. marks: a marker, too.
-- rule: W27
local function check_all_types(marks)
  check_types(marks)
  call('ZCARD', keepers)
end
-- The common reply about one id; `left`: what is left of its hold, if it has one.
-- rule: W1
local function told(what, left, ticket, more, rmore)
  local pttl, flags = call('PTTL', N), waiting()
  if left then flags = flags_for(call('HGET', N, id), flags) end
  if not left and pttl ~= -2 then flags = flags + foreign() end
  local own = left and token_there() or ''
  return { now, pttl, flags, more or 0, what, left or -1, tonumber(ticket or 0), own, rmore or 0 }
end
-- Raises the end of a reader to the lease and never lowers it (W5); returns what is left of it.
-- rule: W2, W5
local function raise(reader, ttl)
  local till = math.max(clock + ttl, tonumber(call('ZSCORE', readers, reader) or 0))
  call('ZADD', readers, text(till), reader)
  fit()
  return till - clock
end
