-- SPDX-License-Identifier: Apache-2.0
-- Makes a writer a reader without a gap, under the same id, with its token and at least its end;
-- waiting readers may join it (L6; rules W18-W20). May be repeated.
-- KEYS[1] N          the lock
-- KEYS[2] queue      exclusive waiters by ticket
-- KEYS[3] rqueue     waiting readers by ticket, and the bar
-- KEYS[4] present    client uuid -> alive until, ms
-- KEYS[5] readers    reader -> its lease end, ms
-- KEYS[6] cancelled  ids that may no longer acquire -> until, ms
-- KEYS[7] dirty      owner-died mark of robust locks
-- KEYS[8] token      the last fencing token
-- KEYS[9] keepers    readers that want a message about a writer -> lease end, ms
-- ARGV[1] layout of keys and arguments
-- ARGV[2] id of the acquisition
-- ARGV[3] lease, ms; 0: what is left of it
-- ARGV[4] kind of the lock: preferred mode
-- ARGV[5] fencing token of the section that continues, if it has one
-- Returns the common answer; what: held, gone
-- Effects: N in mode rlock:read, the id in readers; waiting readers let in, which get messages
-- rule: W18, W20
local N, queue, rqueue, present, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local cancelled, dirty, token, keepers = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local layout, id, lease, prefer = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local own = ARGV[5]
local call = redis.call
local held = call('HLEN', N)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
--include answer
--include token
--include mailbox
--include robust
--include messages
--include settle
check_all_types()
local more, rmore = 0, 0
if own then
  -- between the token of its grant and the last one that was granted
  local first = call('HGET', N, 'token')
  local last = token_last() or string.format('%.0f', now)
  if not first or not string.match(own, '^[1-9]%d*$') or token_above(first, own)
    or token_above(own, last) then
    own = nil
  end
end
if call('HEXISTS', N, id) == 1 then
  local left, since = math.max(call('PTTL', N), lease, 1), call('HGET', N, 'since')
  -- a first write that is permitted when memory is full
  call('PEXPIRE', N, left)
  open_read(own)
  whole(function()
    clear_readers()
    raise(id, left)
    call('HDEL', N, id)
  end, function()
    call('HSET', N, 'mode', 'rlock:write', 'since', since or '0')
    drop(readers)
  end, readers)
  more, rmore = settle(nil, prefer ~= '1' and prefer ~= '2')
end
local left = owns(id)
return told(left and 'held' or 'gone', left, 0, more, rmore)
