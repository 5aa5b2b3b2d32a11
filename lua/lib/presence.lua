-- SPDX-License-Identifier: Apache-2.0
-- The client is here, for `presence` ms. When the whole key was lost though somebody waits,
-- the member * says until when whoever is not in it counts as present: they have not had
-- the time to refresh it. A client refreshes every third of its presence, which is 30 s at
-- most.
-- Needs: call, queue, rqueue, present, uuid, presence, now.
local function presence_lost()
  return call('ZCARD', present) == 0 and call('EXISTS', queue, rqueue) > 0
end
local function stay(lost)
  local till = string.format('%.0f', math.floor(now / 1000) + presence)
  if lost then
    call('ZADD', present, string.format('%.0f', math.floor(now / 1000) + 11000), '*')
  end
  call('ZADD', present, till, uuid)
  call('PEXPIRE', present, '60000')
end
