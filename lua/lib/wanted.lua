-- SPDX-License-Identifier: Apache-2.0
-- Tells a holder who asked for it, and does not know yet, that somebody else wants the lock (K3):
-- the first of a queue, or a try. Whether it is told or not, the script goes on.
-- Needs: call, N.
-- rule: K3
local function wanted()
  local fields = redis.pcall('HGETALL', N)
  for i = 1, #fields, 2 do
    local id = fields[i]
    local uuid = fields[i + 1] == '2' and #id < 128 and string.match(id, '^([^:]+):%d+:%d+:%a%d+%l*$')
    if uuid then
      redis.pcall('HSET', N, id, '3')
      redis.pcall('PUBLISH', 'rlock:client:' .. uuid, '1 wanted ' .. id .. ' ' .. N)
    end
  end
end
