-- SPDX-License-Identifier: Apache-2.0
-- Says when the present reading began, and raises its TTL if that is the reading that the caller
-- means, with the lock's own key and no other (see lock_raise.lua). A renewal of readers asks before
-- reader_raise.lua, and raises behind it: so both keys were of one reading, and the TTL covers an
-- end that was raised before (P20; rules W3, W6).
-- KEYS[1] N  the lock
-- ARGV[1] layout of keys and arguments
-- ARGV[2] when the reading began, us, as an earlier answer said; 0: only asks
-- ARGV[3] lease, ms
-- ARGV[4] 1: writes in any case (rule P11)
-- Returns the common answer; what: held, shared (another reading, or only asked; the ticket says
-- when it began), gone (no reading)
-- Effects: TTL of N
-- rule: P20, W6
local N, layout, since, lease, confirm = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local call = redis.call
local mode = call('HGET', N, 'mode')
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local left = call('PTTL', N)
if mode ~= 'rlock:read' then return { now, left, 0, 0, 'gone', -1, 0, '' } end
local began = call('HGET', N, 'since') or '0'
-- foreign data is no time
if not string.match(began, '^[1-9]%d*$') or #began > 16 or tonumber(began) > 2 ^ 53 then began = '0' end
local own = call('HGET', N, 'token') or ''
if #own > 20 then own = '?' end -- as in lib/answer.lua
if began ~= since or began == '0' then
  return { now, left, 0, 0, 'shared', math.max(left, 0), tonumber(began), own }
end
if left < lease then
  call('PEXPIRE', N, ARGV[3]) -- lease, as text
  left = lease
elseif confirm == '1' then
  left = left + 1
  call('PEXPIRE', N, left)
end
return { now, left, 0, 0, 'held', left, 0, own }
