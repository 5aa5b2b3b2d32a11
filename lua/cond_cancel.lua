-- SPDX-License-Identifier: Apache-2.0
-- Takes a waiter out of a condition, or replies that it was woken; never both. Later joins of this id
-- are refused (V6).
-- KEYS[1] cond         waiting ids by ticket, signalled ids by the end of their time
-- KEYS[2] condpresent  client uuid -> alive until, ms
-- KEYS[3] condleft     ids and clients that may no longer join -> until, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the wait
-- ARGV[3] uuid of the client
-- ARGV[4] life of the marker, ms
-- ARGV[5] 1: if it was signalled, the next waiter is woken in its place
-- Returns the common answer; what: removed, woken, gone (woken, too)
-- Effects: the entry is gone, unless the id was signalled and keeps it; marker
-- rule: V5, V13
local cond, condpresent, condleft = KEYS[1], KEYS[2], KEYS[3]
local layout, id, uuid, life, pass = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
--include cond
begin()
local score, what = call('ZSCORE', cond, id), 'gone'
if is_signalled(score) then
  what = 'woken'
  if pass == '1' then pass_on(id) end
elseif score then
  what = 'removed'
  call('ZREM', cond, id)
else
  local marker = call('ZSCORE', condleft, id)
  if marker and string.find(marker, '.5', 1, true) then what = 'removed' end
end
mark(id, life, what == 'removed')
settle('', '', life)
return { now, -2, 0, 0, what, -1, 0, '' }
