-- SPDX-License-Identifier: Apache-2.0
-- Wakes one waiter or several, or all that wait now. A signal that finds nobody leaves nothing
-- behind (V8).
-- KEYS[1] cond         waiting ids by ticket, signalled ids by the end of their time
-- KEYS[2] condpresent  client uuid -> alive until, ms
-- KEYS[3] condleft     ids and clients that may no longer join -> until, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] uuid of the caller
-- ARGV[3] how many to wake; 0: all
-- ARGV[4] of all: the bar that the first request of a broadcast replied, or 0
-- ARGV[5] life of a marker, ms
-- ARGV[6] ids that have returned: without the uuid, a blank after each
-- ARGV[7] ids that were given up, likewise
-- ARGV[8] 1: it writes in any case, so that a WAIT behind it is of this request (P11)
-- Returns {server us, how many are still to be woken, bar, then for each id of the caller that was
-- woken: the id without the uuid, ticket}
-- Effects: one waiter is signalled, and gets a message; or all up to the bar are taken out, and each
-- client gets a message
-- rule: V3, V7, V8
local cond, condpresent, condleft = KEYS[1], KEYS[2], KEYS[3]
local layout, uuid, count, bar = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local life, done, left, confirm = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8]
--include cond
-- Takes out up to 1024 waiters, and tells their clients. Returns the bar, and whether some are left.
local function wake_all()
  if bar == '0' then
    local last = call('ZREVRANGE', cond, '0', '0', 'WITHSCORES')[2]
    if not last or is_signalled(last) then return 0, 0 end
    bar = text(last)
  end
  local all = call('ZRANGEBYSCORE', cond, text(FIRST_TICKET), bar, 'WITHSCORES', 'LIMIT', '0', '1024')
  local words, counts = {}, {}
  local function send(owner)
    if counts[owner] > 0 then tell(owner, counts[owner], table.concat(words[owner])) end
    words[owner], counts[owner] = {}, 0
  end
  local ids = {}
  for i = 1, #all, 2 do ids[#ids + 1] = all[i] end
  if #ids > 0 then call('ZREM', cond, unpack(ids)) end
  for i = 1, #all, 2 do
    local id, ticket = all[i], all[i + 1]
    local owner = #id <= 127 and string.match(id, '^([^:]+):%d+:%d+:c%d+%l*$')
    if owner == uuid then
      note_own(id, ticket)
    elseif owner then
      if not words[owner] then words[owner], counts[owner] = {}, 0 end
      local list = words[owner]
      list[#list + 1] = id .. ' ' .. ticket .. ' '
      counts[owner] = counts[owner] + 1
      if counts[owner] == 256 then send(owner) end
    end
  end
  for owner in pairs(words) do send(owner) end
  return tonumber(bar), #ids == 1024 and 1 or 0
end
begin()
-- rule: P11
-- no id has this name; the member is over at once
if confirm == '1' then mark('+', 0, false) end
settle(done, left, life)
told = {}
local at, more = 0, 0
if count == 0 then
  at, more = wake_all()
else
  more = count
  while more > 0 do
    local what = signal()
    if what == 'more' then break end
    more = what == 'none' and 0 or more - 1
  end
end
local answer = { now, more, at }
for i = 1, #told do answer[#answer + 1] = told[i] end
return answer
