"""Scripts that a Redis server runs, each of them in one step.

In: keys of the server, and arguments as bytes. Out: a word that says what happened, or a value.
Not here: what calls them, and what the rows say (`redis_store`).

A session is one hash, so a server that throws keys out throws out all of it or nothing. Fields of
17 bytes are rows ("r" and a name) and lists of names by tag ("t" and a tag); shorter fields are the
session's own. A row begins with its tag, of 16 bytes or 0, and its number, of 8 bytes.
"""

OPEN_STORE = """
redis.call('HSETNX', KEYS[1], 'name', ARGV[1])
if redis.call('HGET', KEYS[1], 'name') == ARGV[1] then
  redis.call('HSETNX', KEYS[1], 'proof', ARGV[2])
end
return redis.call('HMGET', KEYS[1], 'name', 'proof')
"""
"""Names a store that has no name yet; returns its name and proof."""

CREATE = """
if redis.call('HGET', KEYS[2], 'name') ~= ARGV[1] then return false end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], unpack(ARGV, 4))
  if ARGV[2] ~= '' then
    redis.call('EXPIREAT', KEYS[1], ARGV[2] + 60)
    redis.call('EXPIREAT', KEYS[4], ARGV[2] + 60)
    redis.call('ZADD', KEYS[3], ARGV[2], ARGV[3])
  end
end
return redis.call('HGET', KEYS[1], 'number')
"""
"""Creates a session unless it is there; returns its number, or nothing in another store.

The server deletes it a minute after its end, so that stores destroy its key first.
"""

LOCK = """
local state = redis.call('HMGET', KEYS[1], 'number', 'holder', 'until')
if state[1] ~= ARGV[1] then return 'forgotten' end
local now = tonumber(redis.call('TIME')[1])
if state[2] and state[2] ~= ARGV[2] and tonumber(state[3]) > now then return 'held' end
redis.call('HSET', KEYS[1], 'holder', ARGV[2], 'until', now + tonumber(ARGV[3]))
return 'done'
"""
"""Lets one transaction go first for some seconds, so that a slow one is not overtaken for ever."""

UNLOCK = """
if redis.call('HGET', KEYS[1], 'holder') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'holder', 'until')
end
"""
"""Ends what LOCK began."""

WRITE = """
if redis.call('HGET', KEYS[2], 'name') ~= ARGV[1] then return 'replaced' end
local state = redis.call('HMGET', KEYS[1], 'number', 'version', 'holder', 'until')
if state[1] ~= ARGV[2] then return 'forgotten' end
if ARGV[5] ~= '' and state[2] == ARGV[5] then return 'done' end
if state[3] and state[3] ~= ARGV[3]
  and tonumber(state[4]) > tonumber(redis.call('TIME')[1]) then return 'held' end
if ARGV[4] ~= '' and state[2] ~= ARGV[4] then return 'changed' end
if ARGV[9] ~= '' and (redis.call('HGET', KEYS[1], ARGV[9]) or '') ~= ARGV[10] then
  return 'changed'
end
if ARGV[11] == '1' then
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if #field == 17 then redis.call('HDEL', KEYS[1], field) end
  end
end
for i = 13, #ARGV, 3 do
  local field, row = 'r' .. ARGV[i + 1], ARGV[i + 2]
  local old = redis.call('HGET', KEYS[1], field)
  if ARGV[i] == '-' then
    redis.call('HDEL', KEYS[1], field)
  elseif not old or ARGV[i] == '1' then
    if old then row = row:sub(1, 16) .. old:sub(17, 24) .. row:sub(25) end
    redis.call('HSET', KEYS[1], field, row)
    local tag = row:sub(1, 16)
    if tag ~= string.rep('\\0', 16) and not (old and old:sub(1, 16) == tag) then
      local names = redis.call('HGET', KEYS[1], 't' .. tag) or ''
      redis.call('HSET', KEYS[1], 't' .. tag, names .. ARGV[i + 1])
    end
  end
end
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[1], 'version', ARGV[5])
  redis.call('HINCRBY', KEYS[1], 'last', ARGV[6])
end
redis.call('HSET', KEYS[1], 'used', ARGV[7], 'expires', ARGV[8])
if state[3] == ARGV[3] then redis.call('HDEL', KEYS[1], 'holder', 'until') end
if ARGV[8] == '' then
  redis.call('PERSIST', KEYS[1])
  redis.call('PERSIST', KEYS[4])
  redis.call('ZREM', KEYS[3], ARGV[12])
else
  redis.call('EXPIREAT', KEYS[1], ARGV[8] + 60)
  redis.call('EXPIREAT', KEYS[4], ARGV[8] + 60)
  redis.call('ZADD', KEYS[3], ARGV[8], ARGV[12])
end
return 'done'
"""
"""Adds rows to a session and removes some, if nothing changed that the transaction depends on.

A call that is repeated after a lost connection changes nothing: the new version is there already.
"""
