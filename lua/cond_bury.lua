-- SPDX-License-Identifier: Apache-2.0
-- Takes a dead client out of a condition, and nothing of any other client: its signals go to the next
-- waiters, its requests that are still on their way find a marker. Looks at 1024 signalled and 1024
-- waiting ids; signals drop the others.
-- KEYS[1] cond         waiting ids by ticket, signalled ids by the end of their time
-- KEYS[2] condpresent  client uuid -> alive until, ms
-- KEYS[3] condleft     ids and clients that may no longer join -> until, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] uuid of the dead client
-- ARGV[3] life of its requests that may be on their way, ms
-- Returns the common answer; what: released, gone (it waited for nothing)
-- Effects: its entries are gone, its presence has ended; marker
-- rule: V15
local cond, condpresent, condleft = KEYS[1], KEYS[2], KEYS[3]
local layout, uuid, life = ARGV[1], ARGV[2], tonumber(ARGV[3])
--include cond
begin()
local own, what = uuid .. ':', 'gone'
local function is_its(id) return string.sub(id, 1, #own) == own end
-- not removed: if it were the last member, every client would count as present
if call('ZSCORE', condpresent, uuid) then call('ZADD', condpresent, '0', uuid) end
mark(uuid, life, false)
local page = { 'LIMIT', '0', '1024' }
for _, id in ipairs(call('ZRANGEBYSCORE', cond, text(FIRST_TICKET), '+inf', unpack(page))) do
  if is_its(id) then
    call('ZREM', cond, id)
    what = 'released'
  end
end
for _, id in ipairs(call('ZRANGEBYSCORE', cond, '-inf', '(' .. text(FIRST_TICKET), unpack(page))) do
  if is_its(id) then
    pass_on(id)
    what = 'released'
  end
end
settle('', '', life)
return { now, -2, 0, 0, what, -1, 0, '' }
