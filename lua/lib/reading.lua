-- SPDX-License-Identifier: Apache-2.0
-- A reading: N in mode rlock:read, and in `readers` each reader's own lease end (server
-- ms). N's TTL is a function of them, the highest end (W3); nothing but `fit` sets it. Whether
-- anybody reads is one look at that end; who is past it is garbage (W8).
-- Needs: call, N, readers, keepers, now, t, token, token_next, token_there.
local clock = math.floor(now / 1000)
local function text(number) return string.format('%.0f', number) end
-- The TTL of N is that of the last reader; readers outlives it, to tell what has ended (W7).
-- Nothing may be written to N after it (T5).
-- Returns it.
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
-- Drops dead readers, 16 at most: nothing depends on it.
-- rule: W8
local function collect()
  for _, list in ipairs({ readers, keepers }) do
    local dead = call('ZRANGEBYSCORE', list, '-inf', '(' .. text(clock), 'LIMIT', '0', '16')
    if dead[1] then call('ZREM', list, unpack(dead)) end
  end
end
-- The reading's token, drawn if need be (W26).
-- rule: W26
local function reading_token()
  local own = token_there()
  if own == '' then
    own = token_next()
    call('HSET', N, 'token', own)
  end
  return own
end
-- Begins a reading, which nobody is in yet: who was in another is taken out behind it (W6), for
-- a DEL as a first write would let the rest pass though memory is full. own: its token.
local function open_read(own)
  if own then
    call('HSET', N, 'mode', 'rlock:read', 'since', text(now), 'token', own)
  else
    call('HSET', N, 'mode', 'rlock:read', 'since', text(now))
  end
end
-- rule: W6
local function clear_readers() return call('DEL', readers, keepers) end
-- Whether N is held for an id, in either mode (W19): what is left of it in ms, else nil.
-- rule: W4, W19
local function owns(id)
  if call('HEXISTS', N, id) == 1 then return call('PTTL', N), 'write' end
  if call('HGET', N, 'mode') ~= 'rlock:read' then return nil end
  local score = tonumber(call('ZSCORE', readers, id) or 0)
  if score >= clock then return score - clock, 'read' end
end
-- The state of N: free, read, or held (by a writer or another type, or by readers whose ends
-- were lost); and of a free one what has ended, if that is known.
-- rule: W6, W7
local function state()
  local mode = call('HGET', N, 'mode')
  if mode ~= 'rlock:read' then
    if mode or call('EXISTS', N) == 1 then return 'held' end
    return 'free', call('EXISTS', readers) == 1 and 'read' or nil
  end
  local top = call('ZREVRANGE', readers, '0', '0', 'WITHSCORES')[2]
  if not top then
    -- of a script that was refused in its midst, or somebody made it persistent
    if call('PTTL', N) == -1 then call('PEXPIRE', N, '60000') end
    return 'held'
  end
  if tonumber(top) >= clock then return 'read' end
  call('DEL', N)
  return 'free', 'read'
end
