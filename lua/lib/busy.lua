-- SPDX-License-Identifier: Apache-2.0
-- The straight line of a try at a lock of ours that another holds, while nobody waits and no id is
-- marked, where the holder needs not be told (lib/wanted.lua) and the lock is not spoilt (lib/robust.lua):
-- it answers as the long way does. there: how many of N, queue, rqueue, cancelled and dirty there are.
-- Needs: call, N, dirty, id, try, now, there. What is refused here is told on the long way.
if there > 0 and try == '1' then
  local fields, marked, left = redis.pcall('HGETALL', N), redis.pcall('GET', dirty), redis.pcall('PTTL', N)
  local looked_at = (fields[1] and 1 or 0) + (marked and 1 or 0)
  local plain = there == looked_at and type(marked) ~= 'table' and marked ~= 'not recoverable'
    and type(left) == 'number' and left > 0
  local ours = false
  for i = 1, #fields, 2 do
    if fields[i] == 'mode' then ours = string.sub(fields[i + 1], 1, 6) == 'rlock:' end
    if fields[i] == id or fields[i + 1] == '2' then plain = false end
  end
  if plain and ours then return { now, left, 0, 0, 'busy', -1, 0, '' } end
end
