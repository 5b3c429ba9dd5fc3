--- The two levels of `kong.cache`: the worker's own memory, and dictionaries that all share. Where
-- nginx.conf has no such dictionary (cli/nginx/dictionaries.lua) there is the first level alone.
--
-- What is kept holds while the word of its key is the same (gateway.kit.cache.generations). A
-- worker's level has two generations of its own: at least the last CAPACITY keys that were used, at
-- most twice as many, so that memory is bounded.
-- @module gateway.kit.cache.levels

local generations = require("gateway.kit.cache.generations")
local string_buffer = require("string.buffer")

local band = bit.band
local decode = string_buffer.decode
local encode = string_buffer.encode
local error = error
local huge = math.huge
local ngx = ngx
local pcall = pcall
local setmetatable = setmetatable
local type = type

local CAPACITY = 16384

-- What stands before an encoded value in a dictionary: a byte, the sum of these.
local STALE, FOR_EVER = 1, 2

local KEPT = { ["nil"] = true, number = true, boolean = true, string = true, table = true }

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Two empty levels.
-- @tparam string name of the shared dictionary; that for nil has "_miss" behind
-- @tparam[opt=name] string prefix what keys of this cache have before them there
-- @treturn table `young`, `old`: key -> `{ value =, place =, word =, expires_at = }`
-- @phases init
function _M.new(name, prefix)
    local self = { name = name, prefix = prefix or name, young = {}, old = {}, count = 0 }
    return setmetatable(self, mt)
end

-- Nil: there are none.
local function dictionaries(self)
    return ngx.shared[self.name], ngx.shared[self.name .. "_miss"]
end

local function put(self, key, entry)
    if self.count >= CAPACITY then
        self.old, self.young, self.count = self.young, {}, 0
    end
    self.young[key] = entry
    self.count = self.count + 1
end

--- What this worker has of a key, if it holds.
-- @tparam string key
-- @treturn table|nil entry with `value`
-- @phases any
function methods:own(key)
    local entry = self.young[key]
    if not entry then
        entry = self.old[key]
        if not entry then
            return nil
        end
        put(self, key, entry)
    end
    local holds = generations.words()[entry.place] == entry.word and ngx.now() < entry.expires_at
    return holds and entry or nil
end

--- Keeps a value in this worker.
-- @tparam string key
-- @tparam any value
-- @tparam table from `place` and `word` of the key, as they were before it was read; `ttl`
-- seconds, 0: for ever; `serializer`: makes what is kept of what is not nil
-- @treturn any what is kept
-- @treturn string|nil the serializer's error
-- @phases any
function methods:keep(key, value, from)
    if value ~= nil and from.serializer then
        local ok, made, err = pcall(from.serializer, value)
        if not ok then
            return nil, "l1_serializer threw an error: " .. tostring(made)
        elseif err then
            return nil, err
        elseif made == nil then
            return nil, "l1_serializer returned a nil value"
        end
        value = made
    end
    put(self, key, {
        value = value,
        place = from.place,
        word = from.word,
        expires_at = from.ttl == 0 and huge or ngx.now() + from.ttl,
    })
    return value
end

local function read(dict, key)
    local text, word, is_expired = dict:get_stale(key)
    if text == nil then
        return nil, word
    end
    return text, word or 0, is_expired
end

--- What the dictionaries have of a key, if nothing was changed since: keeps it in this worker,
-- unless it has expired.
-- @tparam string key
-- @tparam number place of the key
-- @tparam[opt] function serializer
-- @treturn table|nil `value`; `is_expired`; `is_stale`: it has taken the place of an expired one;
-- `ttl` seconds that are left, 0: for ever
-- @treturn string|nil error
-- @phases any
function methods:shared(key, place, serializer)
    local hits, misses = dictionaries(self)
    local dict = hits
    if not hits then
        return nil
    end
    local text, word, is_expired = read(dict, self.prefix .. key)
    if text == nil and not word then
        dict = misses
        text, word, is_expired = read(dict, self.prefix .. key)
    end
    if text == nil then
        return nil, word and "could not read from lua_shared_dict: " .. word
    elseif generations.read(place) ~= word then
        return nil
    end
    local ok, value = pcall(decode, text:sub(2))
    if not ok then
        local why = tostring(value)
        return nil, "could not deserialize value after lua_shared_dict retrieval: " .. why
    end
    local marks = text:byte()
    local found = { value = value, is_expired = is_expired, is_stale = band(marks, STALE) ~= 0 }
    local is_for_ever = band(marks, FOR_EVER) ~= 0
    local ttl = is_for_ever and 0 or not is_expired and dict:ttl(self.prefix .. key)
    found.ttl = ttl or 0
    -- It may expire just now.
    if is_for_ever or (ttl and ttl > 0) then
        local from = { place = place, word = word, ttl = ttl, serializer = serializer }
        local kept, err = self:keep(key, value, from)
        if err then
            return nil, err
        end
        found.value = kept
    end
    return found
end

--- Keeps a value in a dictionary.
-- @tparam string key
-- @tparam any value nil, number, boolean, string, table
-- @tparam table from `word` of the key before the value was read; `ttl`; `is_stale`; `tries`;
-- `is_safe`: nothing else has to go for it
-- @treturn boolean|nil
-- @treturn string|nil error
-- @raise it is of a type that cannot be kept
-- @phases any
function methods:share(key, value, from)
    if not KEPT[type(value)] then
        error("cannot cache value of type " .. type(value), 0)
    end
    local marks = (from.is_stale and STALE or 0) + (from.ttl == 0 and FOR_EVER or 0)
    local text = string.char(marks) .. encode(value)
    local dict, other = dictionaries(self)
    if not dict then
        return true
    elseif value == nil then
        dict, other = other, dict
    end
    other:delete(self.prefix .. key)
    if from.is_safe then
        return dict:safe_set(self.prefix .. key, text, from.ttl, from.word)
    end
    local ok, err
    for _ = 1, from.tries do
        ok, err = dict:set(self.prefix .. key, text, from.ttl, from.word)
        if ok or err ~= "no memory" then
            break
        end
    end
    if not ok and err == "no memory" then
        local message = "could not write to lua_shared_dict '%s' after %d tries (no memory)"
        ngx.log(ngx.WARN, message:format(self.name, from.tries))
    elseif not ok then
        return nil, ("could not write to lua_shared_dict '%s': %s"):format(self.name, err)
    end
    return true
end

--- Forgets a key.
-- @tparam string key
-- @phases any
function methods:delete(key)
    self.young[key], self.old[key] = nil, nil
    local hits, misses = dictionaries(self)
    if hits then
        hits:delete(self.prefix .. key)
        misses:delete(self.prefix .. key)
    end
end

--- Forgets everything.
-- @phases any
function methods:flush()
    self.young, self.old, self.count = {}, {}, 0
    for _, dict in ipairs({ dictionaries(self) }) do
        dict:flush_all()
        dict:flush_expired()
    end
end

return _M
