-- SPDX-License-Identifier: Apache-2.0
-- A step of several writes, of which an ACL may refuse one in the midst: Redis undoes nothing of a
-- script that fails, so `undo` does. The error then names what was refused: of Redis 7.0 that takes the
-- line, which is told of what fails last only. So each command is tried once more in a way that
-- changes nothing: by arguments that are refused behind the ACL, or at the key `gone`, which is not there.
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
