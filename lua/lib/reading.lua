-- SPDX-License-Identifier: Apache-2.0
-- A reading: N in mode rlock:read, and in `readers` each reader's own lease end (server ms). N's
-- TTL is a function of them, the latest end (W3); only `fit` sets it. Whether a client reads is one
-- look at that end; readers past theirs are garbage (W8).
-- Needs: call, N, readers, keepers, now, t, token, token_next, token_there.
local clock = math.floor(now / 1000)
local function text(number) return string.format('%.0f', number) end
-- Sets the TTL of N to that of the last reader. readers outlives N, to show what has ended (W7). No
-- write to N may follow (T5). Returns the TTL.
-- rule: W3, W7, T5
local function fit()
  local top = call('ZREVRANGE', readers, '0', '0', 'WITHSCORES')[2]
  if not top then
    call('DEL', N)
    return -2
  end
  call('PEXPIREAT', N, top)
  call('PEXPIREAT', readers, text(top + 60000))
  return call('PTTL', N)
end
-- Drops up to 16 dead readers; nothing depends on it.
-- rule: W8
local function collect()
  for _, list in ipairs({ readers, keepers }) do
    local dead = call('ZRANGEBYSCORE', list, '-inf', '(' .. text(clock), 'LIMIT', '0', '16')
    if dead[1] then call('ZREM', list, unpack(dead)) end
  end
end
-- The reading's token, drawn if necessary (W26).
-- rule: W26
local function reading_token()
  local own = token_there()
  if own == '' then
    own = token_next()
    call('HSET', N, 'token', own)
  end
  return own
end
-- Begins a reading without readers. Readers of an earlier one are removed after it (W6): with a DEL
-- as first write all other writes would pass although memory is full. own: its token.
local function open_read(own)
  if own then
    call('HSET', N, 'mode', 'rlock:read', 'since', text(now), 'token', own)
  else
    call('HSET', N, 'mode', 'rlock:read', 'since', text(now))
  end
end
-- rule: W6
local function clear_readers() return call('DEL', readers, keepers) end
-- Whether an id holds N, in either mode (W19): what is left of it in ms, else nil.
-- rule: W4, W19
local function owns(id)
  if call('HEXISTS', N, id) == 1 then return call('PTTL', N), 'write' end
  if call('HGET', N, 'mode') ~= 'rlock:read' then return nil end
  local score = tonumber(call('ZSCORE', readers, id) or 0)
  if score >= clock then return score - clock, 'read' end
end
-- The state of N: free, read, or held (by a writer or another type, or by readers whose ends were
-- lost); for a free one also what has ended, if known.
-- rule: W6, W7
local function state()
  local mode = call('HGET', N, 'mode')
  if mode ~= 'rlock:read' then
    if mode or call('EXISTS', N) == 1 then return 'held' end
    return 'free', call('EXISTS', readers) == 1 and 'read' or nil
  end
  local top = call('ZREVRANGE', readers, '0', '0', 'WITHSCORES')[2]
  if not top then
    -- because of a refusal in the middle of a script, or a PERSIST
    if call('PTTL', N) == -1 then call('PEXPIRE', N, '60000') end
    return 'held'
  end
  if tonumber(top) >= clock then return 'read' end
  call('DEL', N)
  return 'free', 'read'
end
