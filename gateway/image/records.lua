--- What of an entity stands in an image, as a record: the one place that knows the fields of both.
--
-- It has two halves. When an entity is put into the store, `write` packs what the core needs as
-- bytes, which the store keeps beside the entity's text. Where an image or a change is made,
-- `unpack` points a record (`sluice_core_entity_t`) at these bytes: no JSON is decoded.
--
-- Packed bytes: a word (1: disabled, it stands in no image), then the fields in the core's order. A
-- number is a word; a text its length and bytes, or NONE; a list its count and texts; headers their
-- count, and a name and a list each. References are no part of it: the store's rows have them.
-- sluice.packed writes them: a store belongs to one machine.
--
-- What native plugins have packed for their C is one more text (gateway.image.of_plugins).
-- @module gateway.image.records

local cjson = require("cjson")
local core = require("sluice.ffi.core")
local digest = require("openssl.digest")
local ffi = require("ffi")
local flags = require("gateway.image.flags")
local look_ups = require("gateway.image.look_ups")
local of_plugins = require("gateway.image.of_plugins")
local packed = require("sluice.ffi.packed")
local patterns = require("gateway.entities.patterns")
local pem = require("gateway.image.pem")
local server_name = require("gateway.image.server_name")
local service_tls = require("gateway.image.service_tls")

local C = core.C
local bor = bit.bor
local cast = ffi.cast
local min = math.min

local NULL = cjson.null
local NONE = 0xffffffff
local DISABLED = 1

-- core.h
local BODY_MAX = 2 ^ 24
local HOST_MAX = 255
local DIGEST_BYTES = 32

-- Grows with each change of what `write` packs, or of the flags.
local VERSION = "9"

local _M = {}

local function only_https(protocols)
    local has_https = false
    for _, protocol in ipairs(protocols or {}) do
        if protocol == "http" then
            return false
        end
        has_https = has_https or protocol == "https"
    end
    return has_https
end

local function redirect_place(status)
    for place = 0, #flags.redirect_codes do
        if flags.redirect_codes[place] == status then
            return place
        end
    end
    return 0
end

local function flags_of_route(route)
    local is = flags.route
    return bor(
        route.strip_path and is.STRIP_PATH or 0,
        route.preserve_host and is.PRESERVE_HOST or 0,
        route.request_buffering == false and is.STREAM_REQUEST or 0,
        route.response_buffering == false and is.STREAM_RESPONSE or 0,
        only_https(route.protocols) and is.HTTPS_ONLY or 0,
        route.path_handling == "v1" and is.PATH_V1 or 0,
        redirect_place(route.https_redirect_status_code) * is.REDIRECT
    ) + min(patterns.bytes(route) / patterns.UNIT, is.PATTERNS_MOST) * is.PATTERNS
end

local function flags_of_service(service)
    local is = flags.service
    local depth = type(service.tls_verify_depth) == "number" and service.tls_verify_depth + 1
    return bor(
        service.protocol == "https" and is.HTTPS or 0,
        service.tls_verify == true and is.VERIFY or 0,
        (depth or 0) * is.DEPTH
    )
end

local function port_and_retries(service)
    return service.port * 65536 + service.retries
end

local function name_of_sni(sni)
    return server_name.normal(sni.name)
end

-- The fields of each kind, as kinds.c has them: a type, and the entity's field or what makes it.
local KINDS = {
    services = {
        kind = C.SLUICE_CORE_SERVICE,
        { "number", flags_of_service },
        { "text", "name" },
        { "text", "host" },
        { "text", "path" },
        { "number", port_and_retries },
        { "number", "connect_timeout" },
        { "number", "write_timeout" },
        { "number", "read_timeout" },
        { "made", "tls", service_tls.pack },
    },
    upstreams = {
        kind = C.SLUICE_CORE_UPSTREAM,
        { "text", "name" },
        { "text", "host_header" },
        { "number", "slots" },
        { "none", "flags" },
        { "slot", "client_certificate" },
    },
    consumers = {
        kind = C.SLUICE_CORE_CONSUMER,
        { "text", "username" },
        { "text", "custom_id" },
    },
    routes = {
        kind = C.SLUICE_CORE_ROUTE,
        { "slot", "service" },
        { "number", flags_of_route },
        { "text", "name" },
        { "hosts", "hosts" },
        { "list", "paths" },
        { "list", "methods" },
        { "headers", "headers" },
        { "number", "regex_priority" },
        { "tls_names", "snis" },
    },
    targets = {
        kind = C.SLUICE_CORE_TARGET,
        { "slot", "upstream" },
        { "text", "target" },
        { "number", "weight" },
    },
    plugins = {
        kind = C.SLUICE_CORE_PLUGIN,
        { "slot", "consumer" },
        { "slot", "consumer_group" },
        { "slot", "route" },
        { "slot", "service" },
        { "text", "name" },
        -- placeholders have others (gateway.image.placeholders)
        { "number", of_plugins.flags },
        { "made", "config", of_plugins.packed_config },
        { "number", of_plugins.units },
        { "list", of_plugins.patterns },
    },
    names = {
        kind = C.SLUICE_CORE_NAME,
        { "text", "name" },
        { "list", "addresses" },
    },
    consumer_groups = {
        kind = C.SLUICE_CORE_GROUP,
        { "text", "name" },
    },
    consumer_group_consumers = {
        kind = C.SLUICE_CORE_MEMBERSHIP,
        -- Both references are all that there is to know.
        has_no_body = true,
        { "slot", "consumer" },
        { "slot", "consumer_group" },
    },
    -- Nobody reads their JSON, which would be the same bytes once more.
    certificates = {
        kind = C.SLUICE_CORE_CERTIFICATE,
        has_no_body = true,
        unpack(pem.fields),
    },
    ca_certificates = {
        kind = C.SLUICE_CORE_CA_CERTIFICATE,
        has_no_body = true,
        { "text", "cert" },
    },
    snis = {
        kind = C.SLUICE_CORE_SNI,
        has_no_body = true,
        { "slot", "certificate" },
        { "made", "name", name_of_sni },
    },
}

-- layout of a plugin's kind -> its fields
local plugins_fields = setmetatable({}, { __mode = "k" })

-- The fields of a kind, nil of one that images do not have.
local function fields_of(of)
    local fields = KINDS[of.kind] or plugins_fields[of]
    if not fields then
        fields = of_plugins.fields(of)
        plugins_fields[of] = fields
    end
    return fields
end

--- The core's kind of a kind of entities.
-- @tparam table of its layout (gateway.store.layout)
-- @treturn number|nil nil: images have none of these
function _M.kind_of(of)
    local fields = fields_of(of)
    return fields and fields.kind
end

--- Whether images have an entity's own text.
-- @tparam table of layout of its kind, which images have
-- @treturn boolean
function _M.has_body(of)
    return not fields_of(of).has_no_body
end

-- Packing ----------------------------------------------------------------------------------------

-- Writes where `write` says.
local out = packed.new()

local function put_text(value)
    out:text(value)
end

local function put_list(list)
    out:list(list)
end

local function put_hosts(hosts)
    hosts = type(hosts) == "table" and hosts or {}
    for i = 1, #hosts do
        if #hosts[i] > HOST_MAX then
            error("has one of more than 255 bytes", 0)
        end
    end
    put_list(hosts)
end

local function put_tls_names(list)
    local names = {}
    for i, name in ipairs(type(list) == "table" and list or {}) do
        names[i] = server_name.normal(name)
    end
    put_list(names)
end

local function put_headers(headers)
    local names = {}
    for name in pairs(type(headers) == "table" and headers or {}) do
        names[#names + 1] = name
    end
    table.sort(names)
    out:count(#names)
    for _, name in ipairs(names) do
        out:text(name)
        out:list(headers[name])
    end
end

local PUT = {
    number = function(value)
        out:number(type(value) == "number" and value or 0)
    end,
    text = put_text,
    -- its digest is made when it is read: a copy of the store has digests of its own
    key = put_text,
    list = put_list,
    hosts = put_hosts,
    tls_names = put_tls_names,
    headers = put_headers,
    slot = function() end,
    none = function() end,
}

local function put(field, entity, of)
    local what, from, make = field[1], field[2], field[3]
    if what == "keys" then
        return look_ups.write(out, of, entity)
    end
    if make then
        return out:text(make(entity, of))
    end
    local value = entity[from]
    if type(from) == "function" then
        value = from(entity, of)
    end
    PUT[what](value ~= NULL and value or nil)
end

local function unbuildable(of, entity, field, reason)
    if reason == packed.TOO_LONG and entity[field] == nil and of.number then
        field, reason = of_plugins.blame(entity)
    end
    return nil,
        {
            err = "unbuildable",
            kind = of.kind,
            id = entity.id,
            field = type(field) == "string" and field or nil,
            reason = tostring(reason),
            message = ("%s '%s': %s %s"):format(of.kind, entity.id, tostring(field), reason),
        }
end

--- Packs what an image needs of an entity. Pure; costs some microseconds.
-- @tparam userdata buffer `string.buffer`, which gets the bytes
-- @tparam table of layout of its kind
-- @tparam table entity checked by its schema
-- @tparam number size bytes of the entity's text, which an image has as its body
-- @treturn boolean|nil false: images have none of this kind; nil: it is too large
-- @treturn nil|table `{ err = "unbuildable", kind =, id =, field =, reason =, message = }`
function _M.write(buffer, of, entity, size)
    local fields = fields_of(of)
    if not fields then
        return false
    elseif size > BODY_MAX then
        return unbuildable(of, entity, "entity", "is longer than 16 MiB")
    end
    out:into(buffer)
    out:number(entity.enabled == false and DISABLED or 0)
    for i = 1, #fields do
        local field = fields[i]
        local ok, reason = pcall(put, field, entity, of)
        if not ok then
            return unbuildable(of, entity, field[2], reason)
        end
    end
    return true
end

--- Which bytes `write` makes of a kind: others where this is another text.
-- @tparam table of layout of its kind
-- @treturn string
function _M.version(of)
    local parts = {}
    for name, packer in pairs(of.packers or {}) do
        parts[#parts + 1] = (" %s=%s"):format(name, packer.version)
    end
    if of.packer then
        parts[1] = " " .. of.packer.version
    end
    parts[#parts + 1] = look_ups.version(of)
    table.sort(parts)
    return VERSION .. table.concat(parts)
end

-- Unpacking --------------------------------------------------------------------------------------

local words = ffi.typeof("const uint32_t *")
local texts = ffi.typeof("sluice_core_text_t *")
local headers = ffi.typeof("sluice_core_header_t *")

--- What an image has of a key of credentials.
-- @tparam string store the uuid of the store, its 16 bytes
-- @tparam string kind such as "keyauth_credentials"
-- @tparam string key
-- @treturn string SHA-256, 32 bytes
function _M.digest(store, kind, key)
    return digest.new("sha256"):final(store .. kind .. "\0" .. key)
end

local function word_at(at)
    return cast(words, at)[0]
end

local function read_text(text, at)
    local length = word_at(at)
    if length == NONE then
        text.data, text.length = nil, 0
        return at + 4
    end
    text.data, text.length = at + 4, length
    return at + 4 + length
end

local function read_list(at, memory)
    local count = word_at(at)
    at = at + 4
    if count == 0 then
        return at, nil, 0
    end
    local list = cast(texts, memory:take(count * ffi.sizeof("sluice_core_text_t")))
    for i = 0, count - 1 do
        at = read_text(list[i], at)
    end
    return at, list, count
end

local READ = {}

function READ.number(value, at)
    value.number = word_at(at)
    return at + 4
end

function READ.text(value, at)
    local length = word_at(at)
    if length == NONE then
        return at + 4
    end
    value.data, value.count = at + 4, length
    return at + 4 + length
end

function READ.key(value, at, memory, of, store)
    local length = word_at(at)
    if length == NONE then
        return at + 4
    end
    value.data = memory:put(_M.digest(store, of.kind, ffi.string(at + 4, length)))
    value.count = DIGEST_BYTES
    return at + 4 + length
end

function READ.keys(value, at, memory, of, store)
    return look_ups.read(value, at, memory, of, function(name, key)
        return _M.digest(store, name, key)
    end)
end

function READ.list(value, at, memory)
    at, value.data, value.count = read_list(at, memory)
    return at
end

READ.hosts = READ.list
READ.tls_names = READ.list
READ.made = READ.text

function READ.none(_, at)
    return at
end

function READ.headers(value, at, memory)
    local count = word_at(at)
    at = at + 4
    if count == 0 then
        return at
    end
    local list = cast(headers, memory:take(count * ffi.sizeof("sluice_core_header_t")))
    for i = 0, count - 1 do
        at = read_text(list[i].name, at)
        at, list[i].values, list[i].count = read_list(at, memory)
    end
    value.data, value.count = list, count
    return at
end

function READ.slot(value, at)
    value.number = core.NOBODY
    return at
end

--- Whether packed bytes are of an entity that stands in no image.
-- @tparam cdata at `const char *`
-- @treturn boolean
function _M.is_disabled(at)
    return word_at(at) == DISABLED
end

--- The flags in packed bytes of a plugin's configuration, which stand behind the plugin's name.
-- @tparam cdata at `const char *`
-- @treturn number
function _M.plugin_flags(at)
    return word_at(READ.text({}, at + 4))
end

--- Points the fields of a record at packed bytes, which have to live as long as it does. References
-- are none.
-- @tparam cdata record `sluice_core_entity_t`, zeroed
-- @tparam table of layout of its kind
-- @tparam cdata at `const char *`
-- @tparam table memory of gateway.image.memory, for lists
-- @tparam string store the uuid of the store, its 16 bytes
function _M.unpack(record, of, at, memory, store)
    local fields = fields_of(of)
    at = at + 4
    for i = 1, #fields do
        at = READ[fields[i][1]](record.fields[i - 1], at, memory, of, store)
    end
end

--- Where a record has a reference.
-- @tparam table of layout of its kind
-- @tparam string name of the entity's field
-- @treturn number|nil nil: it has none, or images have none of its kind
function _M.reference(of, name)
    for i, field in ipairs(fields_of(of) or {}) do
        if field[1] == "slot" and field[2] == name then
            return i - 1
        end
    end
    return nil
end

return _M
