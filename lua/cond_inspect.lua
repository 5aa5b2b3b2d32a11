-- SPDX-License-Identifier: Apache-2.0
-- Shows a page of the waiters of a condition, in the form of lock_inspect. Writes nothing.
-- KEYS[1] cond         waiting ids by ticket
-- KEYS[2] condpresent  client uuid -> alive until, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] most waiters to show
-- ARGV[3] ticket to continue after, or 0
-- ARGV[4] 0: there is only one queue
-- Returns {server us, -2, {}, {}, waiters and tickets, {}, alive-until of each waiter}
-- Effects: none
-- Members longer than ours are cut: whatever other programs write to the key, a client can read the
-- reply.
local cond, condpresent = KEYS[1], KEYS[2]
local layout, count, after, none = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local from = tonumber(after) < 100000000000000 and '100000000000000' or '(' .. after
local waiters = call('ZRANGEBYSCORE', cond, from, '+inf', 'WITHSCORES', 'LIMIT', '0', count)
local others = call('ZSCORE', condpresent, '*') or '0'
local alive = {}
for i = 1, #waiters, 2 do
  if #waiters[i] > 512 then waiters[i] = string.sub(waiters[i], 1, 512) end
  local uuid = string.match(waiters[i], '^([^:]+)')
  alive[#alive + 1] = uuid and call('ZSCORE', condpresent, uuid) or others
end
return { now, -2, {}, {}, waiters, {}, alive }
