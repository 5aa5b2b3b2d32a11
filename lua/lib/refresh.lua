-- SPDX-License-Identifier: Apache-2.0
-- The poll for waiters of an exclusive lock: see mutex_refresh.lua.
-- Needs: the names that mutex_refresh.lua gives to keys and arguments.
-- rule: T2
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include mailbox
--include robust
--include messages
--include handover
--include presence
local flags = waiting()
local lost = spoilt()
if held == 0 then check_types() else call('ZCARD', present) end
local ids, tickets = {}, {}
for part in string.gmatch(names, '%S+') do ids[#ids + 1] = uuid .. ':' .. part end
if #ids > 0 then
  -- one command for all ids; a server older than 6.2 does not know it
  tickets = redis.pcall('ZMSCORE', queue, unpack(ids))
  if tickets.err then
    tickets = {}
    for i, id in ipairs(ids) do tickets[i] = call('ZSCORE', queue, id) end
  end
end
local queued = false
for i, id in ipairs(ids) do
  if tickets[i] then
    queued = true
    named[id] = true
  end
end
if queued then
  local alone = presence_lost()
  call('PEXPIRE', queue, '60000')
  stay(alone)
  redis.pcall('ZREMRANGEBYSCORE', present, '-inf', string.format('(%.0f', math.floor(now / 1000)))
end
local granted, more = nil, 0
if held == 0 then
  granted, more = handover(after)
  if granted then more = 0 end
  flags = waiting()
end
if granted or held > 0 then flags = flags + foreign() end
if queued and not hears(uuid) then flags = flags + 16 end
local left = call('PTTL', N)
local endless = left == -1
local answer = { now, left, flags, more }
for i, id in ipairs(ids) do
  local what, remaining, ticket, own = 'queued', -1, tonumber(tickets[i] or 0), ''
  if granted == id or (not tickets[i] and call('HEXISTS', N, id) == 1) then
    if left == -1 then
      left = tonumber(string.match(id, ':%a(%d+)%l*$'))
      call('PEXPIRE', N, left)
      answer[2] = left
    end
    what, remaining, ticket, own = 'held', left, 0, token_there()
    answer[3] = flags_for(call('HGET', N, id), flags) + died()
  elseif lost then
    what = 'unrecoverable'
  elseif not tickets[i] then
    what = 'gone'
  end
  local at = #answer
  answer[at + 1], answer[at + 2], answer[at + 3], answer[at + 4] = what, remaining, ticket, own
end
if endless and left == -1 then answer[2] = with_end(left) end
return answer
