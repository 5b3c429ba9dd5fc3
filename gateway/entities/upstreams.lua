--- Schema of an upstream: a name for weighted targets.
-- @module gateway.entities.upstreams

local address = require("sluice.address")
local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
upstreams:
  - name: orders-pool
    targets:
      - { target: "10.0.0.1:8080", weight: 90 }
      - { target: "10.0.0.2:8080", weight: 10 }
services:
  - name: orders
    host: orders-pool
]]

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

local function record(description, fields)
    return { type = "record", fields = fields, description = description }
end

-- What to write where only 0 is supported.
local function off_hint()
    return "; set it to 0 or leave it out: there are no such health checks"
end

local function counter(description, supported)
    return {
        type = "integer",
        between = { 0, 255 },
        default = 0,
        supported = supported,
        hint = supported and off_hint,
        description = description,
    }
end

local function seconds(default, description, supported)
    return {
        type = "number",
        between = { 0, 65535 },
        default = default,
        supported = supported,
        hint = supported and off_hint,
        description = description,
    }
end

local function statuses(default, what)
    return {
        type = "array",
        elements = { type = "integer", between = { 100, 999 } },
        default = default,
        description = "Response statuses that count as " .. what .. ".",
    }
end

local HEALTHCHECKS = "Not supported by this version: accepted only where they are off, with `0` "
    .. "for the intervals, for the failure counts of passive checks, and for `threshold`. The "
    .. "other fields have no effect."
local SUCCESSES = "Consecutive successes after which a target is healthy."
local TCP_FAILURES = "Consecutive connection errors after which a target is unhealthy."
local TIMEOUTS = "Consecutive timeouts after which a target is unhealthy."
local HTTP_FAILURES = "Consecutive HTTP failures after which a target is unhealthy."

local check_type = {
    type = "string",
    one_of = { "tcp", "http", "https", "grpc", "grpcs" },
    default = "http",
    description = "Protocol of the checks.",
}

-- What would be hashed.
local function hashed(description)
    return { type = "string", description = description .. " No effect." }
end

local function hash_on(description)
    return {
        type = "string",
        default = "none",
        one_of = {
            "none",
            "consumer",
            "ip",
            "header",
            "cookie",
            "path",
            "query_arg",
            "uri_capture",
        },
        supported = { "none" },
        description = description,
    }
end

-- Health checks are off when intervals and failure counts are zero, as they are
-- by default; nothing else is supported yet.
local OFF = { 0 }

local active = record("Active checks: the gateway sends requests to targets.", {
    { type = check_type },
    { timeout = seconds(1, "Timeout of a check in seconds.") },
    {
        concurrency = {
            type = "integer",
            between = { 1, 2 ^ 31 },
            default = 10,
            description = "Maximum number of targets checked at the same time.",
        },
    },
    { http_path = typedefs.path({ default = "/", description = "Path of the requests." }) },
    { https_sni = typedefs.sni({ description = "Server name of the TLS handshake." }) },
    {
        https_verify_certificate = {
            type = "boolean",
            required = true,
            default = true,
            description = "Verify the certificates of targets.",
        },
    },
    { headers = typedefs.headers({ description = "Headers of the requests." }) },
    {
        healthy = record("When an unhealthy target is healthy again.", {
            { interval = seconds(0, "Seconds between checks of healthy targets.", OFF) },
            { http_statuses = statuses({ 200, 302 }, "good") },
            { successes = counter(SUCCESSES) },
        }),
    },
    {
        unhealthy = record("When a target is unhealthy.", {
            { interval = seconds(0, "Seconds between checks of unhealthy targets.", OFF) },
            { http_statuses = statuses({ 429, 404, 500, 501, 502, 503, 504, 505 }, "bad") },
            { tcp_failures = counter(TCP_FAILURES) },
            { timeouts = counter(TIMEOUTS) },
            { http_failures = counter(HTTP_FAILURES) },
        }),
    },
})

local passive_good = {}
for _, range in ipairs({ { 200, 208 }, { 226, 226 }, { 300, 308 } }) do
    for status = range[1], range[2] do
        passive_good[#passive_good + 1] = status
    end
end

local passive = record("Passive checks: the gateway observes requests of clients.", {
    { type = check_type },
    {
        healthy = record("When an unhealthy target is healthy again.", {
            { http_statuses = statuses(passive_good, "good") },
            { successes = counter(SUCCESSES) },
        }),
    },
    {
        unhealthy = record("When a target is unhealthy.", {
            { http_statuses = statuses({ 429, 500, 503 }, "bad") },
            { tcp_failures = counter(TCP_FAILURES, OFF) },
            { timeouts = counter(TIMEOUTS, OFF) },
            { http_failures = counter(HTTP_FAILURES, OFF) },
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
    description = "A name for several targets. Requests are balanced over them by weight. Services "
        .. "refer to it by name in `host`.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "name",
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        {
            name = {
                type = "string",
                required = true,
                unique = true,
                custom_validator = check_name,
                description = "Name that services use as their `host`: a host name without a port, "
                    .. "not an IP address.",
            },
        },
        { updated_at = typedefs.updated_at },
        {
            algorithm = {
                type = "string",
                default = "round-robin",
                one_of = { "consistent-hashing", "least-connections", "round-robin", "latency" },
                supported = { "round-robin" },
                description = "Load-balancing algorithm: weighted round robin.",
            },
        },
        { hash_on = hash_on("What to hash on, to send similar requests to the same target.") },
        { hash_fallback = hash_on("What to hash on if a request has no value for `hash_on`.") },
        { hash_on_header = typedefs.header_name(hashed("Header for `hash_on`.")) },
        { hash_fallback_header = typedefs.header_name(hashed("Header for `hash_fallback`.")) },
        { hash_on_cookie = typedefs.cookie_name(hashed("Cookie for both.")) },
        {
            hash_on_cookie_path = typedefs.path({
                default = "/",
                secret = false,
                description = "Path of that cookie. No effect.",
            }),
        },
        { hash_on_query_arg = hashed("Query argument for `hash_on`.") },
        { hash_fallback_query_arg = hashed("Query argument for `hash_fallback`.") },
        { hash_on_uri_capture = hashed("Named group of the path's pattern for `hash_on`.") },
        { hash_fallback_uri_capture = hashed("The same for `hash_fallback`.") },
        {
            slots = {
                type = "integer",
                default = 10000,
                between = { 10, 2 ^ 16 },
                description = "Maximum number of slots in the ring of the load balancer: weights "
                    .. "are rounded to multiples of one slot.",
            },
        },
        {
            healthchecks = record(HEALTHCHECKS, {
                { active = active },
                { passive = passive },
                {
                    threshold = {
                        type = "number",
                        default = 0,
                        between = { 0, 100 },
                        supported = OFF,
                        hint = off_hint,
                        description = "Minimum percentage of the total weight that must be healthy "
                            .. "for the upstream to receive requests.",
                    },
                },
            }),
        },
        { tags = typedefs.tags },
        {
            host_header = typedefs.host_with_optional_port({
                description = "Host header sent to all targets, unless the route has "
                    .. "`preserve_host`. If not set, each target receives its own host, with its "
                    .. "port unless that is the default of the protocol.",
            }),
        },
        {
            client_certificate = {
                type = "foreign",
                reference = "certificates",
                description = "Client certificate sent to targets that request one, unless the "
                    .. "service has its own.",
            },
        },
        {
            use_srv_name = {
                type = "boolean",
                default = false,
                supported = { false },
                description = "Send the name in the SRV record of a target as the Host header.",
            },
        },
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
