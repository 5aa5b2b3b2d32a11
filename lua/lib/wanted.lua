-- SPDX-License-Identifier: Apache-2.0
-- Sends a holder that requested it the message that another client wants the lock (K3), unless it
-- was sent already: for the first client of a queue, or a try. The script continues in both cases.
-- Needs: call, N, lib/mailbox.lua.
-- rule: K3
local function wanted()
  local fields = redis.pcall('HGETALL', N)
  for i = 1, #fields, 2 do
    local id = fields[i]
    local uuid = fields[i + 1] == '2' and #id < 128 and string.match(id, '^([^:]+):%d+:%d+:%a%d+%l*$')
    if uuid then
      redis.pcall('HSET', N, id, '3')
      post(uuid, '1 wanted ' .. id .. ' ' .. N)
    end
  end
end
