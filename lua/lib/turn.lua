-- SPDX-License-Identifier: Apache-2.0
-- A turn for strangers (T14). Redisson's waiters are in no queue of ours: a chain of hand-overs
-- would pass them for ever. While one of them listens, a chain ends after 16 hand-overs, or at the
-- first one after 100 ms: the lock is left free, their channel gets its message, and for 10 ms no id
-- of ours takes the lock, unless none of them listens any more; for 5 ms from when a script of ours
-- has seen that a stranger has it. In `cancelled`, at which requests
-- look anyway, the score of ! is the end of the turn (server ms; .5: a stranger has used it), and
-- that of # is 4096 times the end of a chain's 100 ms, plus its hand-overs; plus 2048 after a turn
-- that no stranger used: then the chain has its 100 ms. If a write is refused, the strangers have no turn.
-- For scripts that know that a stranger listens.
-- Needs: N, cancelled, now.
local function turn_score(member)
  local score = redis.pcall('ZSCORE', cancelled, member)
  return type(score) == 'string' and tonumber(score) or 0
end
local function turn_write(member, score)
  if type(redis.pcall('ZADD', cancelled, string.format('%.1f', score), member)) ~= 'number' then
    return false
  end
  local ends = redis.pcall('PTTL', cancelled)
  if type(ends) == 'number' and (ends >= 1000 or redis.pcall('PEXPIRE', cancelled, '1000') == 1) then
    return true
  end
  redis.pcall('ZREM', cancelled, member)
  return false
end
local clock_ms = math.floor(now / 1000)
-- Whether strangers have their turn now. Notes that a turn has ended unused.
-- rule: T14
local function turn_goes_on()
  local till = turn_score('!')
  if till == 0 then return false end
  if till >= clock_ms + 1 and till < clock_ms + 11 then return true end
  redis.pcall('ZREM', cancelled, '!')
  if till <= clock_ms and till % 1 == 0 then
    turn_write('#', (clock_ms + 100) * 4096 + 2048)
  end
  return false
end
-- Begins a turn, if it is due, for the strangers who listen to a lock that is being released.
-- queued: ours wait for it.
-- rule: T14
local function turn_begins(queued)
  local chain = turn_score('#')
  local till, count = math.floor(chain / 4096), chain % 4096
  if till > clock_ms + 100 then till = 0 end -- the clock was set back
  if queued and till == 0 then
    turn_write('#', (clock_ms + 100) * 4096 + 1)
  elseif till > clock_ms and count >= 2048 then
    return false
  elseif queued and till > clock_ms and count < 16 then
    turn_write('#', chain + 1)
  else
    redis.pcall('ZREM', cancelled, '#')
    return turn_write('!', clock_ms + 10)
  end
  return false
end
