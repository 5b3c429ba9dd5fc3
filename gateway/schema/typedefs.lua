--- Types of fields that schemas share, for entities and for plugins.
-- Each is a field definition; calling it makes a copy with other attributes:
-- `typedefs.port({ default = 6379 })`. Those whose fields mean the same everywhere have the
-- `description`, others get it where a field is defined.
-- @module gateway.schema.typedefs

local cjson = require("cjson")
local address = require("sluice.address")
local text = require("gateway.schema.text")
local x509 = require("gateway.schema.x509")

local error = error
local pairs = pairs
local setmetatable = setmetatable
local tostring = tostring

local NULL = cjson.null
local PLUGIN_PROTOCOLS = "Kept for files of Kong, without effect: a plugin runs whatever the "
    .. "protocol of a request."
-- In Kong's order: it is what users see in responses.
local HTTP_PROTOCOLS = { "grpc", "grpcs", "http", "https" }
local PROTOCOLS = { "grpc", "grpcs", "http", "https", "tcp", "tls", "tls_passthrough", "udp" }

local define_mt = {}

local function define(definition)
    return setmetatable(definition, define_mt)
end

function define_mt.__call(base, overrides)
    local copy = {}
    for key, value in pairs(base) do
        copy[key] = value
    end
    for key, value in pairs(overrides) do
        copy[key] = value
    end
    return define(copy)
end

local function check_host(value, allowed)
    local parsed, err = address.parse(value)
    if not parsed then
        return nil,
            err == "invalid port number" and "must not have a port" or "invalid value: " .. value
    elseif parsed.port then
        return nil, "must not have a port"
    elseif allowed == "name" and parsed.type ~= "name" then
        return nil, "must not be an IP"
    end
    return true
end

local function check_sni(value)
    return check_host(value, "name")
end

local function check_host_with_optional_port(value)
    local parsed, err = address.parse(value)
    if not parsed then
        return nil, err == "invalid port number" and err or "invalid hostname: " .. value
    end
    return true
end

local function check_wildcard_sni(value)
    local at = value:find("*", 1, true)
    if at and at ~= 1 and at ~= #value then
        return nil, "wildcard must be leftmost or rightmost character"
    elseif at and value:find("*", at + 1, true) then
        return nil, "only one wildcard must be specified"
    end
    return check_host((value:gsub("%*", "wildcard")), "name")
end

local function check_wildcard_host(value)
    local ok, err = check_host_with_optional_port((value:gsub("%*", "wildcard")))
    if not ok then
        return nil, err == "invalid port number" and err or "invalid hostname: " .. value
    end
    return true
end

local function check_ip(value)
    return address.is_ip(value) or nil, "not an ip address: " .. value
end

local function check_ip_or_cidr(value)
    return address.is_ip_or_cidr(value) or nil, "invalid ip or cidr range: '" .. value .. "'"
end

local function check_url(value)
    local url, err = text.url(value)
    return url ~= nil or nil, err
end

-- A reference that a plugin's configurations do not have.
local function no(what, kind)
    return define({
        type = "foreign",
        reference = kind,
        eq = NULL,
        description = "Has to be null: the plugin cannot be bound to a " .. what .. ".",
    })
end

local types = {
    host = define({ type = "string", custom_validator = check_host }),
    redis_host = define({ type = "string", custom_validator = check_host }),
    host_with_optional_port = define({
        type = "string",
        custom_validator = check_host_with_optional_port,
    }),
    wildcard_host = define({ type = "string", custom_validator = check_wildcard_sni }),
    sni = define({ type = "string", custom_validator = check_sni }),
    redis_server_name = define({ type = "string", custom_validator = check_sni }),
    ip = define({ type = "string", custom_validator = check_ip }),
    ip_or_cidr = define({ type = "string", custom_validator = check_ip_or_cidr }),
    port = define({ type = "integer", between = { 0, 65535 } }),
    url = define({ type = "string", custom_validator = check_url }),
    path = define({
        type = "string",
        starts_with = "/",
        match_none = { { pattern = "//", err = "must not have empty segments" } },
        custom_validator = text.path,
    }),
    http_method = define({ type = "string", match = "^%u+$" }),
    header_name = define({ type = "string", custom_validator = text.header_name }),
    certificate = define({ type = "string", custom_validator = x509.check_chain }),
    key = define({ type = "string", custom_validator = x509.check_key }),
    cookie_name = define({ type = "string", custom_validator = text.cookie_name }),
    timeout = define({ type = "integer", between = { 0, 2 ^ 31 - 2 } }),
    ttl = define({ type = "number", between = { 0, 100000000 } }),
    protocol = define({ type = "string", one_of = PROTOCOLS }),
    uuid = define({
        type = "string",
        uuid = true,
        auto = true,
        description = "Identifies the entity. In a file that gives none it is made of what the "
            .. "entity is known by: the same file gives the same ids.",
    }),
    auto_timestamp_s = define({ type = "integer", timestamp = true, auto = true }),
    auto_timestamp_ms = define({ type = "number", timestamp = true, auto = true }),
    name = define({ type = "string", unique = true, custom_validator = text.name }),
    utf8_name = define({
        type = "string",
        unique = true,
        custom_validator = text.name,
        description = "Name that paths and references take in place of the id. ASCII letters and "
            .. "digits, `.`, `-`, `_`, `~`, and any character beyond ASCII.",
    }),
    tag = define({ type = "string", required = true, custom_validator = text.tag }),
    no_route = no("route", "routes"),
    no_service = no("service", "services"),
    no_consumer = no("consumer", "consumers"),
    no_consumer_group = no("consumer group", "consumer_groups"),
}

types.created_at = types.auto_timestamp_s({
    description = "When the entity was created, in seconds since 1970 (UTC).",
})
types.updated_at = types.auto_timestamp_s({
    description = "When the entity was last changed, in seconds since 1970 (UTC).",
})

types.tags = define({
    type = "set",
    elements = types.tag,
    -- Each is a row of the store: a batch of 1,000 entities has that many of each.
    len_max = 256,
    description = "Labels to find the entity by. Printable characters without `,` and `/`.",
})
types.methods = define({ type = "set", elements = types.http_method })

types.protocols = define({
    type = "set",
    required = true,
    default = HTTP_PROTOCOLS,
    elements = types.protocol,
    description = PLUGIN_PROTOCOLS,
})

types.protocols_http = define({
    type = "set",
    required = true,
    default = HTTP_PROTOCOLS,
    elements = { type = "string", one_of = HTTP_PROTOCOLS },
    description = PLUGIN_PROTOCOLS,
})

local ip_and_port = {
    type = "record",
    fields = {
        { ip = types.ip_or_cidr({ description = "Address, or a range in CIDR notation." }) },
        { port = types.port({ description = "Port." }) },
    },
    entity_checks = { { at_least_one_of = { "ip", "port" } } },
}
types.sources = define({ type = "set", elements = ip_and_port })
types.destinations = define({ type = "set", elements = ip_and_port })

types.hosts = define({
    type = "array",
    elements = {
        type = "string",
        match_none = {
            {
                pattern = "%*[^*]*%*",
                err = "invalid wildcard: must have at most one wildcard",
            },
        },
        match_any = {
            patterns = { "^%*%.", "%.%*$", "^[^*]*$" },
            err = "invalid wildcard: must be placed at leftmost or rightmost label",
        },
        custom_validator = check_wildcard_host,
    },
})

types.router_path = define({
    type = "string",
    match_any = {
        patterns = { "^/", "^~/" },
        err = "should start with: / (fixed path) or ~/ (regex path)",
    },
    match_none = { { pattern = "//", err = "must not have empty segments" } },
    custom_validator = text.route_path,
})
types.router_paths = define({ type = "array", elements = types.router_path })

types.headers = define({
    type = "map",
    keys = types.header_name,
    values = { type = "array", elements = { type = "string" } },
})

-- How plugins hand over what they gather, as sluice.queue does it.
types.queue = define({
    type = "record",
    required = true,
    description = "How entries are gathered and sent.",
    fields = {
        {
            max_batch_size = {
                type = "integer",
                default = 1,
                between = { 1, 1000000 },
                description = "Entries in one request: 1 sends an object, more an array of "
                    .. "objects.",
            },
        },
        {
            max_coalescing_delay = {
                type = "number",
                default = 1,
                between = { 0, 3600 },
                description = "Seconds that the first entry of a batch waits for others.",
            },
        },
        {
            max_entries = {
                type = "integer",
                default = 10000,
                between = { 1, 1000000 },
                description = "Entries that a worker holds at most, those being sent included; "
                    .. "then the oldest is dropped.",
            },
        },
        {
            max_bytes = {
                type = "integer",
                description = "Bytes that a worker holds at most; then the oldest entry is "
                    .. "dropped. No limit unless set.",
            },
        },
        {
            max_retry_time = {
                type = "number",
                default = 60,
                description = "Seconds after which a batch that cannot be sent is dropped; -1 "
                    .. "drops it after the first attempt.",
            },
        },
        {
            initial_retry_delay = {
                type = "number",
                default = 0.01,
                between = { 0.001, 1000000 },
                description = "Seconds before the second attempt; each further one waits twice as "
                    .. "long.",
            },
        },
        {
            max_retry_delay = {
                type = "number",
                default = 60,
                between = { 0.001, 1000000 },
                description = "Maximum number of seconds between attempts.",
            },
        },
        {
            concurrency_limit = {
                type = "integer",
                default = 1,
                one_of = { -1, 1 },
                description = "Batches that a worker sends at the same time: one, or with -1 up "
                    .. "to 64.",
            },
        },
    },
})

return setmetatable(types, {
    __index = function(_, name)
        error("no typedef is called '" .. tostring(name) .. "'", 2)
    end,
})
