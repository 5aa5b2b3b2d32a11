-- SPDX-License-Identifier: Apache-2.0
-- Messages to clients, and to Redisson's waiters. In a cluster (layout 1c) PUBLISH goes to every
-- node. So a client that waits for the lock also subscribes to the sharded channel
-- rlock:client:{<hash tag of the lock>}:<uuid>, whose messages stay at the lock's node and its
-- replicas; it is used if it has a subscriber (P21).
-- Needs: N, layout, channel (nil in a script that has not got it).
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
-- How many of Redisson's waiters listen, as far as they were counted.
local strangers = nil
-- Whether the client hears nothing, as far as the ACL lets the script count. A script that releases
-- counts strangers by the same command.
-- rule: T14
local function is_deaf(uuid)
  if shard_of and shard_of(uuid) then return false end
  if strangers or not channel then
    return redis.pcall('PUBSUB', 'NUMSUB', 'rlock:client:' .. uuid)[2] == 0
  end
  local heard = redis.pcall('PUBSUB', 'NUMSUB', 'rlock:client:' .. uuid, channel)
  strangers = heard[4] or 0
  return heard[2] == 0
end
-- Sends the message; returns how many have received it, or the error.
local function post(uuid, text)
  local shard = shard_of and shard_of(uuid)
  local heard = shard and redis.pcall('SPUBLISH', shard, text)
  if type(heard) == 'number' and heard > 0 then return heard end
  return redis.pcall('PUBLISH', 'rlock:client:' .. uuid, text)
end
