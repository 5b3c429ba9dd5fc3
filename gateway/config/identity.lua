--- Ids for entities of a declarative file that give none.
-- The same file gives the same ids on every node and at every load. An id is a
-- name-based UUID (RFC 4122, section 4.3, version 5) over the kind and what
-- makes the entity unique: its name, or its parents and key. Namespace and
-- spelling of the key are Kong's, so that entities keep their ids when a
-- nested file comes over from there; for entities without a name, where the
-- Kong draws a random id, we take what they match or point to.
-- No secret goes into an id, since services and logs see ids: credentials are told
-- apart by their consumer and their place among the consumer's.
-- @module gateway.config.identity

local digest = require("openssl.digest")

local byte = string.byte
local concat = table.concat
local format = string.format
local ipairs = ipairs
local sort = table.sort
local pairs = pairs
local tostring = tostring
local type = type

local NAMESPACE = "fd02801f-0957-4a15-a55a-c8d9606f30b5"
-- Kong's workspace of a file that names none
local WORKSPACE = "*"
local MAX_KNOWN = 65536

local _M = {}

local function bytes_of(uuid)
    return (
        uuid:gsub("-", ""):gsub("%x%x", function(hex)
            return string.char(tonumber(hex, 16))
        end)
    )
end

-- byte -> two hexadecimal digits
local HEX = {}
for value = 0, 255 do
    HEX[value] = format("%02x", value)
end

local function uuid_v5(name)
    local a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p =
        byte(digest.new("sha1"):final(name), 1, 16)
    local left = HEX[a] .. HEX[b] .. HEX[c] .. HEX[d] .. "-" .. HEX[e] .. HEX[f] .. "-"
    local right = HEX[k] .. HEX[l] .. HEX[m] .. HEX[n] .. HEX[o] .. HEX[p]
    g = 0x50 + g % 16
    i = 0x80 + i % 64
    return left .. HEX[g] .. HEX[h] .. "-" .. HEX[i] .. HEX[j] .. "-" .. right
end

-- kind -> namespace of its entities, as bytes
local namespaces = setmetatable({}, {
    __index = function(self, kind)
        local bytes = bytes_of(uuid_v5(bytes_of(NAMESPACE) .. kind))
        self[kind] = bytes
        return bytes
    end,
})

-- Values as text, the same for the same value: keys sorted, lengths told.
local function canonical(value)
    if type(value) ~= "table" then
        local shown = tostring(value)
        return type(value):sub(1, 1) .. #shown .. ":" .. shown
    end
    local keys, parts = {}, {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    sort(keys, function(a, b)
        return tostring(a) < tostring(b)
    end)
    for i, key in ipairs(keys) do
        parts[i] = canonical(key) .. "=" .. canonical(value[key])
    end
    return "{" .. concat(parts, ",") .. "}"
end

local function by_cache_key(schema, entity)
    local parts = { schema.name, WORKSPACE }
    for _, name in ipairs(schema.cache_key) do
        local value = entity[name]
        parts[#parts + 1] = type(value) == "table" and value.id or value or ""
    end
    return concat(parts, ":")
end

--- What makes an entity unique among those of its kind, as a text.
-- @tparam table schema of the entity
-- @tparam table entity with its references resolved to `{ id = ... }`
-- @treturn string the key
-- @treturn boolean whether a second entity with this key is a mistake
function _M.key(schema, entity)
    if schema.cache_key then
        return by_cache_key(schema, entity), true
    end
    local name = entity[schema.endpoint_key]
    if name and not schema.has_secret_name then
        return name, true
    end
    local values = {}
    for _, field in ipairs(schema.identity) do
        values[field] = entity[field]
    end
    return canonical(values), false
end

-- Ids by namespace and key: most are those of the file before. Forgotten all at once.
local known, known_count = {}, 0

--- The id that belongs to a key.
-- @tparam string kind of the entity
-- @tparam string key as returned by `key`
-- @treturn string UUID
function _M.uuid(kind, key)
    local name = namespaces[kind] .. key
    local id = known[name]
    if not id then
        if known_count >= MAX_KNOWN then
            known, known_count = {}, 0
        end
        id = uuid_v5(name)
        known[name] = id
        known_count = known_count + 1
    end
    return id
end

return _M
