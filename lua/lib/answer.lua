-- SPDX-License-Identifier: Apache-2.0
-- What every script answers: {server us, PTTL of N, flags, more, then for each id
-- what, own remaining ms or -1, ticket, token or ""}; a renewal that was asked for more tokens
-- says how many there are from that one on in place of the ticket. Flags: 1 exclusive waiters queued,
-- 2 readers queued, 4 the holder is foreign, 8 the owner died (lib/robust.lua), 16 nobody
-- listens to the mailbox of a client that refreshes, 32 somebody else wants it who is in no
-- queue, 64 the holder will be told of those who come. more: a ticket after which a refresh is to go on
-- at once, or 0.
-- Needs: call, N, queue, rqueue, t.
local function waiting()
  local flags = 0
  if call('ZCARD', queue) > 0 then flags = 1 end
  if call('ZCARD', rqueue) > 0 then flags = flags + 2 end
  return flags
end
-- The token that N has, or "". Whatever else stands there makes no answer of any length: it is told
-- as what no decoder takes for a token.
local function token_there()
  local own = call('HGET', N, 'token') or ''
  return #own <= 20 and own or '?'
end
-- What a holder has in N. One command, of which an ACL refuses all or nothing.
local function write_holder(id, value, mode, own, dead)
  local fields = { id, value, 'mode', mode, 'since', t[1] .. string.sub('000000' .. t[2], -6) }
  if own ~= '' then fields[7], fields[8] = 'token', own end
  if dead then fields[#fields + 1], fields[#fields + 2] = 'died', '1' end
  call('HSET', N, unpack(fields))
end
-- A key of ours goes, of a user who may not DEL, too.
local function drop(key)
  if type(redis.pcall('DEL', key)) ~= 'number' then redis.pcall('PEXPIRE', key, '0') end
end
-- The flag for the holder there is.
local function foreign()
  local mode = call('HGET', N, 'mode')
  if mode and string.sub(mode, 1, 6) == 'rlock:' then return 0 end
  return 4
end
-- A lock of ours that never ends, by somebody's PERSIST or by a script of an older version that was
-- refused in its midst: it ends when the longest lease would. What is left of it.
local function with_end(left)
  if left == -1 and foreign() == 0 and redis.pcall('PEXPIRE', N, '86400000') == 1 then
    return 86400000
  end
  return left
end
