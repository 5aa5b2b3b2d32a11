-- SPDX-License-Identifier: Apache-2.0
-- The client is present for `presence` ms. If the whole key was lost while clients wait, the member
-- * says until when a client without a member counts as present: it has not had the time for a
-- refresh. A client refreshes every third of its presence, which is 30 s at most.
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
