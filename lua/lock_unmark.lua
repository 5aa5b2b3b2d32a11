-- SPDX-License-Identifier: Apache-2.0
-- Ends the mark of a robust lock's holder, with the key of the mark and no other (see lock_raise.lua),
-- while the holder still has the lock: so that no later holder takes the mark for a death. The lock
-- is given back behind it (lock_drop.lua).
-- KEYS[1] dirty  owner-died mark of robust locks
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] what became of the state that the lock protects: clean, spoilt (unlocked, but not consistent)
-- Returns the common answer, of the mark's key in place of N; what: released, notmine
-- Effects: the mark is gone, or says "not recoverable"
-- rule: P20
local dirty, layout, id, how = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local call = redis.call
local own = call('GET', dirty)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local what = 'notmine'
if own and string.sub(own, 1, #id + 1) == id .. '#' then
  what = 'released'
  if how == 'clean' then
    call('DEL', dirty)
  else
    call('SET', dirty, 'not recoverable', 'EX', '604800')
  end
end
return { now, call('PTTL', dirty), 0, 0, what, -1, 0, '' }
