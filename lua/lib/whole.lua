-- SPDX-License-Identifier: Apache-2.0
-- A step of several writes, of which an ACL may refuse one in the middle: Redis does not undo a
-- failed script, so `undo` does. The error then names what was refused. With Redis 7.0 this needs
-- the line, which is reported only for the last failure. Therefore each command is tried again in a
-- way that changes nothing: with arguments that are refused after the ACL check, or with the key
-- `gone`, which does not exist.
-- Needs: call, N, readers.
-- rule: T5
local function whole(step, undo, gone)
  local done, why = pcall(step)
  if done then return end
  undo()
  local function is_it(reply) return type(reply) == 'table' and reply.err == why end
  if is_it(redis.pcall('HSET', N, 'f', '0', 'odd')) then call('HSET', N, 'f', '0', 'odd') end
  if is_it(redis.pcall('HDEL', N, '')) then call('HDEL', N, '') end
  if is_it(redis.pcall('ZADD', readers, 'none', '')) then call('ZADD', readers, 'none', '') end
  if is_it(redis.pcall('ZSCORE', readers, '')) then call('ZSCORE', readers, '') end
  if is_it(redis.pcall('ZREVRANGE', readers, '', '')) then call('ZREVRANGE', readers, '', '') end
  if is_it(redis.pcall('PEXPIRE', N, '')) then call('PEXPIRE', N, '') end
  if is_it(redis.pcall('PEXPIREAT', N, '')) then call('PEXPIREAT', N, '') end
  if is_it(redis.pcall('PTTL', N)) then call('PTTL', N) end
  if gone and is_it(redis.pcall('DEL', gone)) then call('DEL', gone) end
  error(why, 0)
end
