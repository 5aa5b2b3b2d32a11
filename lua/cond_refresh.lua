-- SPDX-License-Identifier: Apache-2.0
-- A client's poll for its waiters of one condition: proves their presence, replies what happened to
-- each, and keeps the signals of those that are on their way back. Never joins; takes out nothing that
-- it tells (V4).
-- KEYS[1] cond         waiting ids by ticket, signalled ids by the end of their time
-- KEYS[2] condpresent  client uuid -> alive until, ms
-- KEYS[3] condleft     ids and clients that may no longer join -> until, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] uuid of the client
-- ARGV[3] presence, ms
-- ARGV[4] ids that wait: without the uuid, a blank after each
-- ARGV[5] ids that were woken and have not returned yet, likewise
-- ARGV[6] life of a marker, ms
-- ARGV[7] ids that have returned, likewise
-- ARGV[8] ids that were given up, likewise
-- Returns the common answer, for each waiting id; what: waiting (and the ticket), woken
-- Effects: presence; signals of ids that were given up or are overdue wake the next waiters
-- rule: V4, V12
local cond, condpresent, condleft = KEYS[1], KEYS[2], KEYS[3]
local layout, uuid, presence, waits, back = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local life, done, left = tonumber(ARGV[6]), ARGV[7], ARGV[8]
--include cond
begin()
local ids = {}
for name in string.gmatch(waits, '%S+') do ids[#ids + 1] = uuid .. ':' .. name end
if #ids > 0 then
  stay(presence, presence_lost())
  redis.pcall('ZREMRANGEBYSCORE', condpresent, '-inf', '(' .. text(ms))
end
for name in string.gmatch(back, '%S+') do
  local id = uuid .. ':' .. name
  if is_signalled(call('ZSCORE', cond, id)) then call('ZADD', cond, text(ms + 2 * presence), id) end
end
settle(done, left, life)
local scores = {}
if #ids > 0 then
  -- one command for all ids; a server older than 6.2 does not know it
  scores = redis.pcall('ZMSCORE', cond, unpack(ids))
  if scores.err then
    scores = {}
    for i, id in ipairs(ids) do scores[i] = call('ZSCORE', cond, id) end
  end
end
local flags = 0
if #ids > 0 and not hears(uuid) then flags = 16 end
local answer = { now, -2, flags, 0 }
for i = 1, #ids do
  local score, at = scores[i], #answer
  local waits_on = score and not is_signalled(score)
  if is_signalled(score) then call('ZADD', cond, text(ms + 2 * presence), ids[i]) end
  answer[at + 1], answer[at + 2] = waits_on and 'waiting' or 'woken', -1
  answer[at + 3], answer[at + 4] = waits_on and tonumber(score) or 0, ''
end
return answer
