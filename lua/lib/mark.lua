-- SPDX-License-Identifier: Apache-2.0
-- Leaves the marker of an id that may no longer acquire (T3), for `life` ms.
-- What an ACL may refuse of it is only the removal of those that have ended.
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
  -- no mark without an end
  call('ZREM', cancelled, id)
  call('PTTL', cancelled)
  call('PEXPIRE', cancelled, life)
end
