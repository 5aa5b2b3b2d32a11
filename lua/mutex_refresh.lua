-- SPDX-License-Identifier: Apache-2.0
-- A client's poll for its waiters of one lock: keeps them present, hands over a lock that came
-- free without a release, and tells what became of each. Never joins or takes for an id that is not
-- queued (T2); whom it picks among its own is told by the answer alone (T11).
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] readers    reader -> its lease end, ms
-- KEYS[6] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[7] dirty      owner-died mark of robust locks
-- KEYS[8] token      the last fencing token
-- ARGV[1] layout of keys and arguments
-- ARGV[2] uuid of the client
-- ARGV[3] presence, ms
-- ARGV[4] ticket to go on after, or 0
-- ARGV[5] and on: ids of waiting acquisitions
-- Returns the common answer; what: held, queued, gone
-- Effects: presence; N written for the next holder, who is told unless it is among the ids
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token = KEYS[6], KEYS[7], KEYS[8]
local layout, uuid, presence, after = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include handover
check_types()
local tickets, mine = {}, {}
local queued = false
for i = 5, #ARGV do
  local ticket = call('ZSCORE', queue, ARGV[i])
  tickets[i] = ticket
  if ticket then
    queued = true
    mine[ARGV[i]] = true
  end
end
if queued then
  call('PEXPIRE', queue, 60000)
  call('PEXPIRE', present, 60000)
  call('ZADD', present, string.format('%.0f', math.floor(now / 1000) + presence), uuid)
  call('PEXPIRE', present, 60000)
end
local granted, more = nil, 0
if held == 0 then granted, more = handover(after, mine) end
if granted then more = 0 end
local flags = waiting()
if granted or held > 0 then flags = flags + foreign() end
local left = call('PTTL', N)
local answer = { now, left, flags, more }
for i = 5, #ARGV do
  local id = ARGV[i]
  if granted == id or (not tickets[i] and call('HEXISTS', N, id) == 1) then
    if left == -1 then
      left = tonumber(string.match(id, ':%a(%d+)%l*$'))
      call('PEXPIRE', N, left)
      answer[2] = left
    end
    answer[#answer + 1] = 'held'
    answer[#answer + 1] = left
    answer[#answer + 1] = 0
    answer[#answer + 1] = call('HGET', N, 'token') or ''
  else
    answer[#answer + 1] = tickets[i] and 'queued' or 'gone'
    answer[#answer + 1] = -1
    answer[#answer + 1] = tonumber(tickets[i] or 0)
    answer[#answer + 1] = ''
  end
end
return answer
