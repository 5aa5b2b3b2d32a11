-- SPDX-License-Identifier: Apache-2.0
-- Tells Redisson's waiters that the lock is free. In a cluster (layout 1c) they may use sharded
-- channels, and PUBLISH, which goes to every node, is only for a channel that has a subscriber here
-- (P22). Statements, not a function: a short path does not pay for more.
-- Needs: layout, channel.
-- rule: P22
if layout == '1' then
  redis.pcall('PUBLISH', channel, '0')
else
  local heard = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
  if heard[2] and heard[2] ~= 0 then redis.pcall('SPUBLISH', channel, '0') end
  heard = redis.pcall('PUBSUB', 'NUMSUB', channel)
  if heard[2] ~= 0 then redis.pcall('PUBLISH', channel, '0') end
end
