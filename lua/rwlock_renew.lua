-- SPDX-License-Identifier: Apache-2.0
-- Raises the ends of a client's acquisitions that hold the lock, in either mode. Never shortens an
-- end, never revives one that has passed, never touches another client's (S2; rules T4, W2-W5).
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
-- ARGV[2] uuid of the client
-- ARGV[3] at most 256 acquisitions: id without the uuid, blank, lease in ms, letters, blank, and so
-- on; for a writer, t: it wants a message when another client wants the lock (K2), m: another block
-- of tokens (H11), c: the renewal writes in any case (P11); that of a reader always does
-- Returns the common answer; what: held, gone
-- Effects: ends in readers and keepers, TTL of N; a writer's value, and the block
-- rule: W2, T4, P11
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token, keepers = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local layout, uuid, names = ARGV[1], ARGV[2], ARGV[3]
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include mailbox
--include messages
--include reading
--include keepers
--include note
local flags = waiting()
call('ZCARD', readers)
call('ZCARD', keepers)
local answer = { now, 0, flags, 0 }
local pttl, reads = call('PTTL', N), call('HGET', N, 'mode') == 'rlock:read'
-- a first write that is permitted when memory is full
if reads then call('PEXPIRE', readers, pttl + 60000) end
-- What a writer learns about other clients, and its token (as in lib/renew.lua).
local function renewed(id, how)
  local value, tell = call('HGET', N, id), string.find(how, 't') ~= nil
  if (tell or value ~= '1') and flags == 0 and (value == '3' or channel_heard()) then flags = 32 end
  if tell and value == '1' then
    value = flags == 0 and '2' or '3'
    if not note(id, value) then value = '1' end
  end
  if value == '2' then flags = flags + 64 end
  local own = token_there()
  if own ~= '' and string.find(how, 'm') then
    -- without memory for it, or if the key holds something else, the lease counts all the same
    local drawn, first, count = pcall(token_block)
    if drawn then return first, count end
  end
  return own, 0
end
local listed = {}
for part, ttl, how in string.gmatch(names, '(%S+) (%d+)(%l*) ') do
  local id, own, count = uuid .. ':' .. part, '', 0
  local left, mode = owns(id)
  if left and tonumber(ttl) > left then
    left = tonumber(ttl)
    if reads then
      call('ZADD', readers, text(clock + left), id)
    else
      call('PEXPIRE', N, left)
    end
  elseif mode == 'write' and string.find(how, 'c') then
    left = left + 1
    call('PEXPIRE', N, left)
  end
  if mode == 'write' then
    own, count = renewed(id, how)
  elseif left then
    own = token_there()
    if tells(id) then
      listed[#listed + 1] = id
      listed[#listed + 1] = left
    end
  end
  local at = #answer
  answer[at + 1], answer[at + 2], answer[at + 3] = left and 'held' or 'gone', left or -1, count
  answer[at + 4] = own
end
if reads then
  -- A reading that is over keeps what says so: the last reader may have left with its own key alone
  -- (P20).
  local top = call('ZREVRANGE', readers, '0', '0', 'WITHSCORES')[2]
  if top and tonumber(top) >= clock then
    collect()
    fit()
  end
  flags = flags_for_readers(listed, flags)
end
answer[2], answer[3] = call('PTTL', N), flags
answer[#answer + 1] = 0
return answer
