-- SPDX-License-Identifier: Apache-2.0
-- A request for a lock that a writer or another type holds: nothing can be handed over, so the id
-- queues in `line` (whose bit in the flags is `bit`), or the reply says why not.
-- Needs: what lib/asking.lua needs, try; of readers, share.
local function behind(line, bit)
  local mode = held > 0 and call('HGET', N, 'mode')
  if held == 0 or mode == 'rlock:read' or call('HEXISTS', N, id) == 1 then return nil end
  local left, flags, what, ticket = call('PTTL', N), waiting(), 'queued', '0'
  if not mode or string.sub(mode, 1, 6) ~= 'rlock:' then flags = flags + 4 end
  left = with_end(left)
  if is_marked() then what = 'refused'
  elseif now > not_after then what = 'late'
  elseif spoilt() then what = 'unrecoverable'
  elseif try == '1' then
    what = 'busy'
    wanted()
  elseif try == '2' then
    -- only for a reader: it must not wait
    what = call('HEXISTS', N, share) == 1 and 'busy' or 'gone'
  else
    ticket = queue_up(line)
    if flags % (2 * bit) < bit then flags = flags + bit end
  end
  return { now, left, flags, 0, what, -1, tonumber(ticket), '', 0 }
end
