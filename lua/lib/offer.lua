-- SPDX-License-Identifier: Apache-2.0
-- Behind lib/announce.lua, of a lock that was left free: ours stand back for the strangers who got
-- the message (lib/turn.lua). Statements, because a short path does not pay for functions.
-- Needs: cancelled, now, hearers.
-- rule: T14
if hearers ~= 0 and type(hearers) == 'number' then
--include turn
  if not turn_goes_on() then turn_begins(false) end
end
