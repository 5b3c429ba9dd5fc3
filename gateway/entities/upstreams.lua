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

local function counter(description, supported)
    return {
        type = "integer",
        between = { 0, 255 },
        default = 0,
        supported = supported,
        description = description,
    }
end

local function seconds(default, description, supported)
    return {
        type = "number",
        between = { 0, 65535 },
        default = default,
        supported = supported,
        description = description,
    }
end

local function statuses(default, what)
    return {
        type = "array",
        elements = { type = "integer", between = { 100, 999 } },
        default = default,
        description = "Statuses of answers that count as " .. what .. ".",
    }
end

local HEALTHCHECKS = "Not supported by this version: targets are not checked. The fields are kept "
    .. "for files of Kong, without effect."
local SUCCESSES = "Good answers in a row that make a target healthy."
local TCP_FAILURES = "Failed connections in a row that make a target unhealthy."
local TIMEOUTS = "Timeouts in a row that make a target unhealthy."
local HTTP_FAILURES = "Bad answers in a row that make a target unhealthy."

local check_type = {
    type = "string",
    one_of = { "tcp", "http", "https", "grpc", "grpcs" },
    default = "http",
    description = "How a target is asked, or what is looked at.",
}

-- What would be hashed.
local function hashed(description)
    return { type = "string", description = description .. " Without effect." }
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

local active = record("Checks by requests of their own.", {
    { type = check_type },
    { timeout = seconds(1, "Seconds that a check may take.") },
    {
        concurrency = {
            type = "integer",
            between = { 1, 2 ^ 31 },
            default = 10,
            description = "Targets that are checked at a time.",
        },
    },
    { http_path = typedefs.path({ default = "/", description = "Path that is asked for." }) },
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

local passive = record("Checks by the requests of clients.", {
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
    description = "A name for several targets, which take the requests in turn by their weights. "
        .. "Services name it as their `host`.",
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
                description = "Name that services have as their `host`: a host name, with no "
                    .. "port, and no address.",
            },
        },
        { updated_at = typedefs.updated_at },
        {
            algorithm = {
                type = "string",
                default = "round-robin",
                one_of = { "consistent-hashing", "least-connections", "round-robin", "latency" },
                supported = { "round-robin" },
                description = "How requests are shared among targets: by turns, as their weights "
                    .. "say.",
            },
        },
        { hash_on = hash_on("What keeps requests at the same target.") },
        { hash_fallback = hash_on("The same for requests without that of `hash_on`.") },
        { hash_on_header = typedefs.header_name(hashed("Header for `hash_on`.")) },
        { hash_fallback_header = typedefs.header_name(hashed("Header for `hash_fallback`.")) },
        { hash_on_cookie = typedefs.cookie_name(hashed("Cookie for both.")) },
        {
            hash_on_cookie_path = typedefs.path({
                default = "/",
                description = "Path of that cookie. Without effect.",
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
                description = "Turns of a round at most: shares are rounded to one of so many.",
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
                        description = "Percent of the weights that have to be healthy for the "
                            .. "upstream to take requests.",
                    },
                },
            }),
        },
        { tags = typedefs.tags },
        {
            host_header = typedefs.host_with_optional_port({
                description = "Host header for all targets, unless the route has `preserve_host`. "
                    .. "Without it each gets its own host, with the port unless that is the "
                    .. "protocol's.",
            }),
        },
        {
            client_certificate = {
                type = "foreign",
                reference = "certificates",
                description = "Certificate that is shown to targets that ask for one, unless the "
                    .. "service has its own.",
            },
        },
        {
            use_srv_name = {
                type = "boolean",
                default = false,
                supported = { false },
                description = "Send the name of a target's SRV record as Host header.",
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
