-- SPDX-License-Identifier: Apache-2.0
-- Writes a field when the TTL was set already. What had ended by that, on a server that stood still,
-- is not to come back (T5).
-- Needs: call, N.
local function note(field, text)
  if type(redis.pcall('HSET', N, field, text)) ~= 'number' then return false end
  if call('PTTL', N) ~= -1 then return true end
  call('DEL', N)
  return false
end
