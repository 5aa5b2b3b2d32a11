-- SPDX-License-Identifier: Apache-2.0
-- Releases a hold in the mode that the server has it in (W19), and hands over: after a writing to
-- all queued readers, after the last reader to the next writer (S2, L1, L6; rules T3, T5, T7, W3,
-- W11). An id that only waits is taken out of the queues.
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket, and the bar
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] readers    reader -> its lease end, ms
-- KEYS[6] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[7] dirty      owner-died mark of robust locks
-- KEYS[8] token      the last fencing token
-- KEYS[9] keepers    readers that want a message about a writer -> lease end, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] life of the marker to leave, ms; 0: none
-- ARGV[4] channel where Redisson's waiters listen
-- ARGV[5] kind of the lock: preferred mode
-- Returns the common answer; what: released, notmine
-- Effects: N deleted, shortened to the last reader's end, or written for the next holders, which
-- get messages; message 0 on the channel when no waiter took it
-- rule: W19
local N, queue, rqueue, readers, id = KEYS[1], KEYS[2], KEYS[3], KEYS[5], ARGV[2]
local layout, life, channel = ARGV[1], ARGV[3], ARGV[4]
local call = redis.call
-- an id that only reads has no field of N
local writes = not string.find(id, ':r', 1, true) and call('HEXISTS', N, id) == 1
local reads = not writes and call('HGET', N, 'mode') == 'rlock:read'
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
-- short path without waiters
if life == '0' and (writes or reads) and call('EXISTS', queue, rqueue) == 0 then
  local gone, top = writes, nil
  if reads and string.byte(id, -1) == 107 then call('ZREM', KEYS[9], id) end
  if reads then
    -- Counted first: a user who may not count removes no reader.
    local count = call('ZCARD', readers)
    gone = call('ZREM', readers, id) == 1
    if gone and count > 1 then
      top = call('ZREVRANGE', readers, '0', '0', 'WITHSCORES')[2]
    end
  end
  if top and now < (top + 1) * 1000 then
    call('PEXPIREAT', N, top)
    call('PEXPIREAT', readers, top + 60000)
    return { now, call('PTTL', N), 0, 0, 'released', -1, 0, '', 0 }
  elseif gone then
    -- for a user without the right, the reading does not continue without its last reader
    if type(redis.pcall('DEL', N)) ~= 'number' then
      if reads then call('PEXPIRE', N, '0') end
      return call('DEL', N)
    end
    if top then call('DEL', readers) end
--include announce
    return { now, -2, 0, 0, 'released', -1, 0, '', 0 }
  end
end
local present, cancelled, dirty, token, keepers = KEYS[4], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local prefer = ARGV[5]
life = tonumber(life)
--include answer
--include token
--include mailbox
--include robust
--include messages
--include settle
--include mark
check_all_types(life > 0)
local what, last, top = 'notmine', nil, nil
-- Reads the end of the remaining readers first: a user who may not read it removes no reader.
local function leave_reading()
  local highest = call('ZREVRANGE', readers, '0', '1', 'WITHSCORES')
  top = highest[1] == id and highest[4] or highest[1] ~= id and highest[2]
  return call('ZREM', readers, id) == 1
end
if writes then
  call('DEL', N)
  what, last = 'released', 'write'
elseif reads and leave_reading() then
  what = 'released'
  call('ZREM', keepers, id)
  if top and tonumber(top) >= clock then
    fit()
  else
    if type(redis.pcall('DEL', N, readers, keepers)) ~= 'number' then
      call('PEXPIRE', N, '0')
      return call('DEL', N)
    end
    last = 'read'
  end
else
  call('ZREM', queue, id)
  call('ZREM', rqueue, id)
end
if life > 0 then mark(id, life) end
local more, rmore = settle(last, false)
if last and call('EXISTS', N) == 0 then
--include announce
end
return { now, call('PTTL', N), waiting(), more, what, -1, 0, '', rmore }
