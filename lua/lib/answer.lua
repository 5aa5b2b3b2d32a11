-- SPDX-License-Identifier: Apache-2.0
-- The reply of every script: {server us, PTTL of N, flags, more, then for each id what, own
-- remaining ms or -1, ticket, token or ""}. A renewal that requested tokens replies how many there
-- are from that token on, in place of the ticket. Flags: 1 exclusive waiters are queued, 2 readers
-- are queued, 4 the holder is foreign, 8 the owner died (lib/robust.lua), 16 the mailbox of the
-- polling client has no subscriber, 32 a client that is in no queue wants the lock, 64 the holder
-- will get a message about later waiters. more: the ticket after which a refresh should continue at
-- once, or 0.
-- Needs: call, N, queue, rqueue, t.
local function waiting()
  local flags = 0
  if call('ZCARD', queue) > 0 then flags = 1 end
  if call('ZCARD', rqueue) > 0 then flags = flags + 2 end
  return flags
end
-- The token in N, or "". Other data there does not make a reply of arbitrary length: it is reported
-- as a value that no decoder takes for a token.
local function token_there()
  local own = call('HGET', N, 'token') or ''
  return #own <= 20 and own or '?'
end
-- Writes a holder's fields in N. One command, of which an ACL refuses all or nothing.
local function write_holder(id, value, mode, own, dead)
  local fields = { id, value, 'mode', mode, 'since', t[1] .. string.sub('000000' .. t[2], -6) }
  if own ~= '' then fields[7], fields[8] = 'token', own end
  if dead then fields[#fields + 1], fields[#fields + 2] = 'died', '1' end
  call('HSET', N, unpack(fields))
end
-- Deletes one of our keys, also for a user who may not DEL.
local function drop(key)
  if type(redis.pcall('DEL', key)) ~= 'number' then redis.pcall('PEXPIRE', key, '0') end
end
-- The flag for a foreign holder.
local function foreign()
  local mode = call('HGET', N, 'mode')
  if mode and string.sub(mode, 1, 6) == 'rlock:' then return 0 end
  return 4
end
-- Gives an end to a lock of ours that has none, because of a PERSIST or a refusal in a script of an
-- older version: the longest lease. Returns what is left of it.
local function with_end(left)
  if left == -1 and foreign() == 0 and redis.pcall('PEXPIRE', N, '86400000') == 1 then
    return 86400000
  end
  return left
end
