-- SPDX-License-Identifier: Apache-2.0
-- Writes a field after the TTL was set. If N has expired in between, on a server that stood still,
-- it does not come back (T5).
-- Needs: call, N.
local function note(field, text)
  if type(redis.pcall('HSET', N, field, text)) ~= 'number' then return false end
  if call('PTTL', N) ~= -1 then return true end
  call('DEL', N)
  return false
end
