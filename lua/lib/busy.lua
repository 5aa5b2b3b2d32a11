-- SPDX-License-Identifier: Apache-2.0
-- Short path for a try on a lock of ours that another holder has, when no client waits, no id is
-- marked, the holder needs no message (lib/wanted.lua) and the lock is recoverable
-- (lib/robust.lua). Its reply is that of the long path. there: how many of N, queue, rqueue,
-- cancelled and dirty exist.
-- Needs: call, N, dirty, id, try, now, there. The long path reports refusals.
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
