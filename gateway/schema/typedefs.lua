--- Types of fields that schemas share, for entities and for plugins.
-- Each is a field definition; calling it makes a copy with other attributes:
-- `typedefs.port({ default = 6379 })`. Those whose fields mean the same everywhere have the
-- `description`, others get it where a field is defined.
-- @module gateway.schema.typedefs

local cjson = require("cjson")
local address = require("sluice.address")
local text = require("gateway.schema.text")
local x509 = require("gateway.schema.x509")

local NULL = cjson.null
local PLUGIN_PROTOCOLS = "For compatibility with Kong; no effect. A plugin runs for all protocols. "
    .. "`ws` and `wss` are those of Kong Enterprise; a WebSocket here is of `http` or `https`."
-- In Kong's order: it is what users see in responses.
local HTTP_PROTOCOLS = { "grpc", "grpcs", "http", "https" }
-- Bytes of a path for which another is shown.
local MAX_HINTED = 60
local WS_PROTOCOLS = { "ws", "wss" }
local PROTOCOLS = { "grpc", "grpcs", "http", "https", "tcp", "tls", "tls_passthrough", "udp" }

local function joined(list, more)
    local out = { unpack(list) }
    for _, item in ipairs(more) do
        out[#out + 1] = item
    end
    return out
end

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
    elseif allowed == "name" and parsed.type ~= "name" then
        return nil, "must not be an IP"
    elseif parsed.port then
        return nil, "must not have a port"
    end
    return true
end

local function check_sni(value)
    return check_host(value, "name")
end

-- What a text that is no address looks like.
local function kind_of(value)
    local rest, colons = value:gsub(":", "")
    return colons > 1 and "ipv6 address" or (rest:find("^[%d.]+$") and "ipv4 address") or "hostname"
end

local function check_host_with_optional_port(value)
    local parsed, err = address.parse(value)
    if not parsed and err ~= "invalid port number" then
        err = ("invalid %s: %s"):format(kind_of(value), value)
    end
    return parsed and true or nil, err
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
    if not ok and err ~= "invalid port number" then
        err = ("invalid %s: %s"):format(kind_of(value), value)
    end
    return ok, err
end

local function check_ip(value)
    return address.is_ip(value) or nil, "not an ip address: " .. value
end

local function check_ip_or_cidr(value)
    return address.is_ip_or_cidr(value) or nil, "invalid ip or cidr range: '" .. value .. "'"
end

local function check_ip_or_cidr_v4(value)
    local is_v4 = address.is_ip_or_cidr(value) and not value:find(":", 1, true)
    return is_v4 or nil, "invalid ipv4 cidr range: '" .. value .. "'"
end

local function check_lua_code(value)
    local fn, err = load(value, "=code", "t")
    return fn ~= nil or nil, "Error parsing function: " .. tostring(err)
end

-- A reference that a plugin's configurations do not have.
local function no(what, kind)
    return define({
        type = "foreign",
        reference = kind,
        eq = NULL,
        description = "Must be null: the plugin cannot be bound to a " .. what .. ".",
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
    cidr_v4 = define({ type = "string", custom_validator = check_ip_or_cidr_v4 }),
    port = define({ type = "integer", between = { 0, 65535 } }),
    url = define({ type = "string", custom_validator = text.any_url }),
    path = define({
        type = "string",
        starts_with = "/",
        match_none = { { pattern = "//", err = "must not have empty segments" } },
        custom_validator = text.path,
    }),
    http_method = define({
        type = "string",
        match = "^%u+$",
        hint = function(value)
            return value:find("^%a+$") and "; did you mean " .. value:upper() .. "?"
        end,
    }),
    -- Of what a data plane can do, and of versions.
    capability = define({ type = "string" }),
    semantic_version = define({
        type = "string",
        match_any = {
            patterns = { "^%d+[%.%d]*$", "^%d+[%.%d]*%-?.*$" },
            err = "invalid version number: must be in format of X.Y.Z",
        },
        match_none = { { pattern = "%.%.", err = "must not have empty version segments" } },
    }),
    header_name = define({ type = "string", custom_validator = text.header_name }),
    certificate = define({ type = "string", custom_validator = x509.check_chain }),
    key = define({ type = "string", custom_validator = x509.check_key }),
    public_key = define({ type = "string", custom_validator = x509.check_public_key }),
    -- A name is no secret, what the cookie has may be one.
    cookie_name = define({
        type = "string",
        secret = false,
        custom_validator = text.cookie_name,
    }),
    timeout = define({ type = "integer", between = { 0, 2 ^ 31 - 2 } }),
    ttl = define({ type = "integer", between = { 0, 100000000 } }),
    protocol = define({ type = "string", one_of = PROTOCOLS }),
    -- Who owns an entity of a plugin's, which goes with the consumer.
    consumer = define({
        type = "foreign",
        reference = "consumers",
        required = true,
        on_delete = "cascade",
    }),
    -- Of plugins that ask who a client is.
    anonymous = define({
        type = "string",
        description = "Id or username of the consumer used for requests without valid "
            .. "credentials; if not set, they are refused. If several authentication plugins "
            .. "have it, one successful authentication is enough.",
    }),
    realm = define({
        type = "string",
        required = false,
        description = "Realm in the `WWW-Authenticate` header of a 401.",
    }),
    uuid = define({
        type = "string",
        uuid = true,
        auto = true,
        description = "Unique id of the entity. If a file has none, it is derived from the "
            .. "identifying fields: the same file yields the same ids.",
    }),
    auto_timestamp_s = define({ type = "integer", timestamp = true, auto = true }),
    auto_timestamp_ms = define({ type = "number", timestamp = true, auto = true }),
    name = define({ type = "string", unique = true, custom_validator = text.name }),
    utf8_name = define({
        type = "string",
        unique = true,
        custom_validator = text.name,
        description = "Name that can be used instead of the id in paths and references. ASCII "
            .. "letters and digits, `.`, `-`, `_`, `~`, and any non-ASCII character.",
    }),
    tag = define({ type = "string", required = true, custom_validator = text.tag }),
    no_route = no("route", "routes"),
    no_service = no("service", "services"),
    no_consumer = no("consumer", "consumers"),
    no_consumer_group = no("consumer group", "consumer_groups"),
}

types.cidr = types.cidr_v4 -- its former name

types.created_at = types.auto_timestamp_s({
    description = "Creation time, in seconds since 1970 (UTC).",
})
types.updated_at = types.auto_timestamp_s({
    description = "Time of the last change, in seconds since 1970 (UTC).",
})

types.tags = define({
    type = "set",
    elements = types.tag,
    -- Each is a row of the store: a batch of 1,000 entities has that many of each.
    len_max = 256,
    description = "Labels for grouping and filtering. Printable characters without `,` and `/`.",
})
types.methods = define({ type = "set", elements = types.http_method })

types.protocols = define({
    type = "set",
    required = true,
    default = HTTP_PROTOCOLS,
    elements = types.protocol({ one_of = joined(PROTOCOLS, WS_PROTOCOLS) }),
    description = PLUGIN_PROTOCOLS,
})

types.protocols_http = define({
    type = "set",
    required = true,
    default = HTTP_PROTOCOLS,
    elements = { type = "string", one_of = joined(HTTP_PROTOCOLS, WS_PROTOCOLS) },
    description = PLUGIN_PROTOCOLS,
})

local function ip_and_port(whose)
    local ip = ("Address %s, or a range in CIDR notation."):format(whose)
    local port = ("Port %s."):format(whose)
    return {
        type = "record",
        fields = {
            { ip = types.ip_or_cidr({ description = ip }) },
            { port = types.port({ description = port }) },
        },
        entity_checks = { { at_least_one_of = { "ip", "port" } } },
    }
end
types.sources = define({ type = "set", elements = ip_and_port("of the client") })
types.destinations = define({
    type = "set",
    elements = ip_and_port("that the client connected to"),
})

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

-- Paths as nginx and regular expressions begin them, and those without their slash.
local FOREIGN_PATHS = {
    { "^%^/([%w%p]*)$", "~/%s" },
    { "^~%s*%^/([%w%p]*)$", "~/%s" },
    { "^~%*%s*%^/([%w%p]*)$", "~/(?i)%s" },
    { "^=%s*/([%w_/-]*)$", "~/%s$" },
    { "^(%w[%w._/-]*)$", "/%s" },
}

local function router_path_hint(value)
    local is_near = #value <= MAX_HINTED and not value:find("//", 1, true)
    for _, known in ipairs(is_near and FOREIGN_PATHS or {}) do
        local rest = value:match(known[1])
        local path = rest and known[2]:format(rest)
        if path and text.route_path(path) then
            return "; write " .. path
        end
    end
    return nil
end

types.router_path = define({
    type = "string",
    hint = router_path_hint,
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

-- What a route has that its protocols rule out.
local function none(name)
    return types[name]({ eq = NULL, description = "Must be null: nothing may be set here." })
end
types.no_sources, types.no_destinations = none("sources"), none("destinations")
types.no_methods, types.no_hosts, types.no_headers = none("methods"), none("hosts"), none("headers")
types.no_paths = none("router_paths")

-- How plugins hand over what they gather, as sluice.queue does it.
types.queue = define({
    type = "record",
    required = true,
    description = "How entries are batched and sent.",
    fields = {
        {
            max_batch_size = {
                type = "integer",
                default = 1,
                between = { 1, 1000000 },
                description = "Maximum entries per request: 1 sends an object, more an array of "
                    .. "objects.",
            },
        },
        {
            max_coalescing_delay = {
                type = "number",
                default = 1,
                between = { 0, 3600 },
                description = "Maximum time in seconds that a batch waits for more entries.",
            },
        },
        {
            max_entries = {
                type = "integer",
                default = 10000,
                between = { 1, 1000000 },
                description = "Maximum entries queued by the node, including those being sent; "
                    .. "beyond it the oldest is dropped.",
            },
        },
        {
            max_bytes = {
                type = "integer",
                description = "Maximum bytes queued by the node; beyond it the oldest entry is "
                    .. "dropped. No limit if not set.",
            },
        },
        {
            max_retry_time = {
                type = "number",
                default = 60,
                description = "Time in seconds after which a batch that cannot be sent is dropped; "
                    .. "-1 drops it after the first attempt.",
            },
        },
        {
            initial_retry_delay = {
                type = "number",
                default = 0.01,
                between = { 0.001, 1000000 },
                description = "Delay in seconds before the first retry; it doubles with each "
                    .. "further retry.",
            },
        },
        {
            max_retry_delay = {
                type = "number",
                default = 60,
                between = { 0.001, 1000000 },
                description = "Maximum delay in seconds between retries.",
            },
        },
        {
            concurrency_limit = {
                type = "integer",
                default = 1,
                one_of = { -1, 1 },
                description = "Batches that are sent concurrently: 1, or up to 64 with -1.",
            },
        },
    },
})

types.lua_code = define({
    type = "map",
    keys = { type = "string", len_min = 1 },
    values = { type = "string", len_min = 1, custom_validator = check_lua_code },
    description = "Lua code by the name of the field that it makes.",
})

for name, typedef in pairs(require("gateway.schema.typedefs_compound")) do
    types[name] = define(typedef)
end

return setmetatable(types, {
    __index = function(_, name)
        error("schema typedef error: definition " .. tostring(name) .. " does not exist", 2)
    end,
})
