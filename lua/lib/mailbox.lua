-- SPDX-License-Identifier: Apache-2.0
-- Messages to clients, and to Redisson's waiters. In a cluster (layout 1c) PUBLISH goes to every
-- node. So a client that waits for the lock also subscribes to the sharded channel
-- rlock:client:{<hash tag of the lock>}:<uuid>, whose messages stay at the lock's node and its
-- replicas; it is used if it has a subscriber (P21).
-- Needs: N, layout.
local shard_of = nil
-- The client's sharded channel, if it has a subscriber; else false. Counted once for each client.
-- rule: P21
if layout ~= '1' then
  local shards = {}
  shard_of = function(uuid)
    if shards[uuid] == nil then
      local channel = 'rlock:client:{' .. (string.match(N, '{(.*)}') or N) .. '}:' .. uuid
      local heard = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
      shards[uuid] = (heard[2] or 0) > 0 and channel
    end
    return shards[uuid]
  end
end
-- Whether the client hears nothing, as far as the ACL lets the script count.
local function is_deaf(uuid)
  if shard_of and shard_of(uuid) then return false end
  local heard = redis.pcall('PUBSUB', 'NUMSUB', 'rlock:client:' .. uuid)
  return heard[2] == 0
end
-- Sends the message; returns how many have received it, or the error.
local function post(uuid, text)
  local shard = shard_of and shard_of(uuid)
  local heard = shard and redis.pcall('SPUBLISH', shard, text)
  if type(heard) == 'number' and heard > 0 then return heard end
  return redis.pcall('PUBLISH', 'rlock:client:' .. uuid, text)
end
