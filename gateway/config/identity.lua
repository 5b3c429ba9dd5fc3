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

local ffi = require("ffi")

local concat = table.concat
local format = string.format
local sort = table.sort

local NAMESPACE = "fd02801f-0957-4a15-a55a-c8d9606f30b5"
-- Kong's workspace of a file that names none
local WORKSPACE = "*"
local UUID_BYTES, UUID_LENGTH = 16, 36

ffi.cdef([[
typedef struct evp_md_st EVP_MD;
typedef struct evp_md_ctx_st EVP_MD_CTX;
EVP_MD_CTX *EVP_MD_CTX_new(void);
const EVP_MD *EVP_sha1(void);
int EVP_DigestInit_ex(EVP_MD_CTX *ctx, const EVP_MD *type, void *engine);
int EVP_DigestUpdate(EVP_MD_CTX *ctx, const void *data, size_t length);
int EVP_DigestFinal_ex(EVP_MD_CTX *ctx, unsigned char *digest, unsigned *length);
]])

-- One context for all ids: of a large file they are as many as entities, and to make one takes
-- longer than a digest does. Through luaossl's library, which has the OpenSSL that it uses itself.
local crypto = ffi.load(package.searchpath("_openssl", package.cpath))
local context = crypto.EVP_MD_CTX_new()
if context == nil or crypto.EVP_DigestInit_ex(context, crypto.EVP_sha1(), nil) ~= 1 then
    error("OpenSSL has no SHA-1")
end
local hash = ffi.new("uint8_t[20]")
local text = ffi.new("char[?]", UUID_LENGTH)

local _M = {}

local function bytes_of(uuid)
    return (
        uuid:gsub("-", ""):gsub("%x%x", function(hex)
            return string.char(tonumber(hex, 16))
        end)
    )
end

-- byte -> two hexadecimal digits
local HEX = ffi.new("char[256][2]")
for value = 0, 255 do
    ffi.copy(HEX[value], format("%02x", value), 2)
end

local DASH = 45

local function uuid_v5(namespace, name)
    crypto.EVP_DigestInit_ex(context, nil, nil)
    crypto.EVP_DigestUpdate(context, namespace, #namespace)
    crypto.EVP_DigestUpdate(context, name, #name)
    crypto.EVP_DigestFinal_ex(context, hash, nil)
    hash[6] = 0x50 + hash[6] % 16
    hash[8] = 0x80 + hash[8] % 64
    local at = 0
    for i = 0, UUID_BYTES - 1 do
        local hex = HEX[hash[i]]
        text[at], text[at + 1] = hex[0], hex[1]
        at = at + 2
        if i == 3 or i == 5 or i == 7 or i == 9 then
            text[at] = DASH
            at = at + 1
        end
    end
    return ffi.string(text, UUID_LENGTH)
end

-- kind -> namespace of its entities, as bytes
local namespaces = setmetatable({}, {
    __index = function(self, kind)
        local bytes = bytes_of(uuid_v5(bytes_of(NAMESPACE), kind))
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
        if value ~= nil or name ~= schema.optional_in_ids then
            parts[#parts + 1] = type(value) == "table" and value.id or value or ""
        end
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

--- The id that belongs to a key.
-- @tparam string kind of the entity
-- @tparam string key as returned by `key`
-- @treturn string UUID
function _M.uuid(kind, key)
    return uuid_v5(namespaces[kind], key)
end

return _M
