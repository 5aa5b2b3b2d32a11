-- SPDX-License-Identifier: Apache-2.0
-- Whether ours stand back for strangers (lib/turn.lua). An acquire includes it only where there may
-- be a turn: most do not pay for the function.
-- Needs: N, cancelled, now, strangers_listen, post.
-- Whether ours stand back now, as far as this script has looked.
local back = false
-- Whether a lock that is free is left to strangers (lib/turn.lua). id: the first of ours that wait,
-- if this script releases the lock, and then sends strangers their message. The id's client gets
-- one, too, so that it looks again until the turn is over. used: a stranger has the lock.
-- rule: T14
local function stands_back(id, uuid, used)
  if not strangers_listen() then return false end
--include turn
  if used then
    local till = turn_score('!')
    return till > 0 and till % 1 == 0 and turn_write('!', math.min(till, clock_ms + 5) + 0.5)
  end
  back = turn_goes_on()
  if back or not id then return back end
  back = turn_begins(true)
  if back then post(uuid, '1 lost ' .. id .. ' ' .. N) end
  return back
end
