-- SPDX-License-Identifier: Apache-2.0
-- Releases a reader, with the key of the readers and no other (see reader_raise.lua). Nobody is
-- handed the lock. The lock's own key stays: behind the last reader, the member ~ with an end that
-- has passed says that the reading is over, and the next script that names all keys ends it (W7).
-- KEYS[1] readers  reader -> its lease end, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- Returns the common answer, of the readers' key in place of N; what: released, notmine
-- Effects: the reader is gone
-- rule: P20, W7
local readers, layout, id = KEYS[1], ARGV[1], ARGV[2]
local call = redis.call
local mine = call('ZSCORE', readers, id)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local left = call('PTTL', readers)
if not mine then return { now, left, 0, 0, 'notmine', -1, 0, '' } end
-- a first write that is permitted when memory is full
if left < 60000 then
  left = 60000
  call('PEXPIRE', readers, left)
end
if call('ZCARD', readers) == 1 then
  call('PEXPIRE', readers, left)
  call('ZADD', readers, '0', '~')
end
call('ZREM', readers, id)
return { now, left, 0, 0, 'released', -1, 0, '' }
