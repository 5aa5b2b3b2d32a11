-- SPDX-License-Identifier: Apache-2.0
-- Writes the marker of an id that may not acquire any more (T3), for `life` ms. An ACL may refuse
-- only the removal of markers that have ended.
-- Needs: call, cancelled, now.
-- rule: T3
local function mark(id, life)
  local ms = math.floor(now / 1000)
  redis.pcall('ZREMRANGEBYSCORE', cancelled, '-inf', string.format('(%.0f', ms))
  call('ZADD', cancelled, string.format('%.0f', ms + life), id)
  local ends = redis.pcall('PTTL', cancelled)
  if type(ends) == 'number' and (ends >= life or redis.pcall('PEXPIRE', cancelled, life) == 1) then
    return
  end
  -- no marker without an end
  call('ZREM', cancelled, id)
  call('PTTL', cancelled)
  call('PEXPIRE', cancelled, life)
end
