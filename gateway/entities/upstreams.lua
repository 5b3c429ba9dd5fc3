--- Schema of an upstream: a name for weighted targets.
-- @module gateway.entities.upstreams

local address = require("sluice.address")
local typedefs = require("gateway.schema.typedefs")

local function check_name(name)
    local parsed, err = address.parse(name)
    local reason
    if not parsed and err ~= "invalid port number" then
        reason = "must be a valid hostname"
    elseif not parsed or parsed.port then
        reason = "no port allowed"
    elseif parsed.type ~= "name" then
        reason = "no ip addresses allowed"
    end
    return not reason or nil, reason and "Invalid name ('" .. name .. "'); " .. reason
end

local function record(fields)
    return { type = "record", fields = fields }
end

local function counter(extra)
    return { type = "integer", between = { 0, 255 }, default = 0, supported = extra }
end

local function seconds(default, supported)
    return { type = "number", between = { 0, 65535 }, default = default, supported = supported }
end

local function statuses(default)
    return {
        type = "array",
        elements = { type = "integer", between = { 100, 999 } },
        default = default,
    }
end

local check_type = {
    type = "string",
    one_of = { "tcp", "http", "https", "grpc", "grpcs" },
    default = "http",
}
local word = { type = "string" }
local hash_on = {
    type = "string",
    default = "none",
    one_of = { "none", "consumer", "ip", "header", "cookie", "path", "query_arg", "uri_capture" },
    supported = { "none" },
}

-- Health checks are off when intervals and failure counts are zero, as they are
-- by default; nothing else is supported yet.
local OFF = { 0 }

local active = record({
    { type = check_type },
    { timeout = seconds(1) },
    { concurrency = { type = "integer", between = { 1, 2 ^ 31 }, default = 10 } },
    { http_path = typedefs.path({ default = "/" }) },
    { https_sni = typedefs.sni },
    { https_verify_certificate = { type = "boolean", required = true, default = true } },
    { headers = typedefs.headers },
    {
        healthy = record({
            { interval = seconds(0, OFF) },
            { http_statuses = statuses({ 200, 302 }) },
            { successes = counter() },
        }),
    },
    {
        unhealthy = record({
            { interval = seconds(0, OFF) },
            { http_statuses = statuses({ 429, 404, 500, 501, 502, 503, 504, 505 }) },
            { tcp_failures = counter() },
            { timeouts = counter() },
            { http_failures = counter() },
        }),
    },
})

local passive_good = {}
for _, range in ipairs({ { 200, 208 }, { 226, 226 }, { 300, 308 } }) do
    for status = range[1], range[2] do
        passive_good[#passive_good + 1] = status
    end
end

local passive = record({
    { type = check_type },
    {
        healthy = record({
            { http_statuses = statuses(passive_good) },
            { successes = counter() },
        }),
    },
    {
        unhealthy = record({
            { http_statuses = statuses({ 429, 500, 503 }) },
            { tcp_failures = counter(OFF) },
            { timeouts = counter(OFF) },
            { http_failures = counter(OFF) },
        }),
    },
})

local function required_when(field, value, needed)
    return {
        conditional = {
            if_field = field,
            if_match = { eq = value },
            then_field = needed,
            then_match = { required = true },
        },
    }
end

return {
    name = "upstreams",
    primary_key = { "id" },
    endpoint_key = "name",
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        {
            name = {
                type = "string",
                required = true,
                unique = true,
                custom_validator = check_name,
            },
        },
        { updated_at = typedefs.auto_timestamp_s },
        {
            algorithm = {
                type = "string",
                default = "round-robin",
                one_of = { "consistent-hashing", "least-connections", "round-robin", "latency" },
                supported = { "round-robin" },
            },
        },
        { hash_on = hash_on },
        { hash_fallback = hash_on },
        { hash_on_header = typedefs.header_name },
        { hash_fallback_header = typedefs.header_name },
        { hash_on_cookie = typedefs.cookie_name },
        { hash_on_cookie_path = typedefs.path({ default = "/" }) },
        { hash_on_query_arg = word },
        { hash_fallback_query_arg = word },
        { hash_on_uri_capture = word },
        { hash_fallback_uri_capture = word },
        { slots = { type = "integer", default = 10000, between = { 10, 2 ^ 16 } } },
        {
            healthchecks = record({
                { active = active },
                { passive = passive },
                {
                    threshold = {
                        type = "number",
                        default = 0,
                        between = { 0, 100 },
                        supported = OFF,
                    },
                },
            }),
        },
        { tags = typedefs.tags },
        { host_header = typedefs.host_with_optional_port },
        {
            client_certificate = {
                type = "foreign",
                reference = "certificates",
            },
        },
        { use_srv_name = { type = "boolean", default = false, supported = { false } } },
    },
    entity_checks = {
        required_when("hash_on", "header", "hash_on_header"),
        required_when("hash_fallback", "header", "hash_fallback_header"),
        required_when("hash_on", "cookie", "hash_on_cookie"),
        required_when("hash_fallback", "cookie", "hash_on_cookie"),
        required_when("hash_on", "query_arg", "hash_on_query_arg"),
        required_when("hash_fallback", "query_arg", "hash_fallback_query_arg"),
        required_when("hash_on", "uri_capture", "hash_on_uri_capture"),
        required_when("hash_fallback", "uri_capture", "hash_fallback_uri_capture"),
        { distinct = { "hash_on_header", "hash_fallback_header" } },
        { distinct = { "hash_on_query_arg", "hash_fallback_query_arg" } },
        { distinct = { "hash_on_uri_capture", "hash_fallback_uri_capture" } },
    },
}
