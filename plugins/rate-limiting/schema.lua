--- Configuration of the rate-limiting plugin, in Kong's layout.
-- @module plugins.rate-limiting.schema

local typedefs = require("gateway.schema.typedefs")
local periods = require("plugins.rate-limiting.periods")

local format = string.format

--- The counters of a node live in its own memory; shared ones come with the cluster.
local function check_policy(policy)
    if policy ~= "local" then
        return nil, format("policy '%s' is not supported by this version, only 'local' is", policy)
    end
    return true
end

--- A longer period with a smaller limit would make the shorter one pointless.
local function check_limits(config)
    local lower, lower_period
    for _, period in ipairs(periods) do
        local limit = config[period]
        if type(limit) == "number" then
            if lower and limit < lower then
                return nil,
                    format(
                        "The limit for %s(%.1f) cannot be lower than the limit for %s(%.1f)",
                        period,
                        limit,
                        lower_period,
                        lower
                    )
            end
            lower, lower_period = limit, period
        end
    end
    if config.sync_rate and config.sync_rate ~= -1 then
        return nil, "sync_rate can only be used with the redis policy"
    end
    return true
end

local function limit_field(period)
    return {
        type = "number",
        gt = 0,
        description = "Requests that may be made per " .. period .. ".",
    }
end

local function secret(length)
    return { type = "string", len_min = length, referenceable = true }
end

local timeout = { type = "integer", between = { 0, 2147483646 } }
local servers = {
    type = "array",
    elements = {
        type = "record",
        fields = {
            { host = typedefs.host },
            { ip = typedefs.host },
            { port = { type = "integer", between = { 0, 65535 }, default = 6379 } },
        },
    },
}

local cloud_authentication = {
    type = "record",
    fields = {
        { auth_provider = { type = "string", one_of = { "aws", "azure", "gcp" } } },
        { aws_access_key_id = secret(0) },
        { aws_assume_role_arn = secret(0) },
        { aws_cache_name = secret(0) },
        { aws_is_serverless = { type = "boolean" } },
        { aws_region = secret(0) },
        { aws_role_session_name = secret(0) },
        { aws_secret_access_key = secret(0) },
        { azure_client_id = secret(0) },
        { azure_client_secret = secret(0) },
        { azure_tenant_id = secret(0) },
        { gcp_service_account_json = secret(0) },
    },
}

-- Settings of the policy "redis". They may stand in a file, as in every file that Kong's tools
-- export; no policy of this version reads them.
local redis = {
    type = "record",
    required = true,
    description = "Settings of the policy 'redis'; without effect for the policy 'local'.",
    fields = {
        { host = typedefs.host({ referenceable = true }) },
        { port = { type = "integer", between = { 0, 65535 }, default = 6379 } },
        { timeout = { type = "integer", between = { 0, 2147483646 }, default = 2000 } },
        { username = secret(1) },
        { password = secret(0) },
        { database = { type = "integer", default = 0 } },
        { ssl = { type = "boolean", default = false } },
        { ssl_verify = { type = "boolean", default = false } },
        { server_name = { type = "string" } },
        -- Of Kong's later versions and of its Enterprise.
        { connect_timeout = timeout },
        { send_timeout = timeout },
        { read_timeout = timeout },
        { keepalive_pool_size = { type = "integer" } },
        { keepalive_backlog = { type = "integer" } },
        { connection_is_proxied = { type = "boolean" } },
        { cloud_authentication = cloud_authentication },
        { cluster_nodes = servers },
        { cluster_addresses = { type = "array", elements = { type = "string" } } },
        { cluster_max_redirections = { type = "integer" } },
        { sentinel_nodes = servers },
        { sentinel_addresses = { type = "array", elements = { type = "string" } } },
        { sentinel_master = { type = "string" } },
        { sentinel_role = { type = "string", one_of = { "master", "slave", "any" } } },
        { sentinel_username = secret(1) },
        { sentinel_password = secret(0) },
    },
}

--- A field of `redis` as it stood beside it before Kong 3.6: redis_host and so on.
local function former(name, kind, is_secret)
    return {
        ["redis_" .. name] = {
            type = kind,
            len_min = kind == "string" and 0 or nil,
            referenceable = is_secret,
            deprecation = true,
            func = function(value)
                return { redis = { [name] = value } }
            end,
        },
    }
end

return {
    name = "rate-limiting",
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                fields = {
                    { second = limit_field("second") },
                    { minute = limit_field("minute") },
                    { hour = limit_field("hour") },
                    { day = limit_field("day") },
                    { month = limit_field("month") },
                    { year = limit_field("year") },
                    {
                        limit_by = {
                            type = "string",
                            default = "consumer",
                            one_of = {
                                "consumer",
                                "credential",
                                "ip",
                                "service",
                                "header",
                                "path",
                            },
                            description = "Whose requests are counted together. Where a request "
                                .. "has no such thing, the client's address counts.",
                        },
                    },
                    { header_name = typedefs.header_name },
                    { path = typedefs.path },
                    {
                        policy = {
                            type = "string",
                            default = "local",
                            one_of = { "local", "cluster", "redis" },
                            custom_validator = check_policy,
                            description = "Where the counters live: 'local' is the memory that "
                                .. "the workers of this node share.",
                        },
                    },
                    {
                        fault_tolerant = {
                            type = "boolean",
                            required = true,
                            default = true,
                            description = "Let a request pass when it cannot be counted; "
                                .. "otherwise it is answered with 500.",
                        },
                    },
                    { redis = redis },
                    {
                        hide_client_headers = {
                            type = "boolean",
                            required = true,
                            default = false,
                            description = "Send no rate limit headers to the client.",
                        },
                    },
                    {
                        error_code = {
                            type = "integer",
                            -- Others would end or break the client's HTTP.
                            between = { 200, 599 },
                            default = 429,
                            description = "Status of a refused request.",
                        },
                    },
                    {
                        error_message = {
                            type = "string",
                            default = "API rate limit exceeded",
                            description = "Message of a refused request.",
                        },
                    },
                    {
                        sync_rate = {
                            type = "number",
                            required = true,
                            default = -1,
                            description = "For the policy 'redis'; -1 otherwise.",
                        },
                    },
                },
                shorthand_fields = {
                    former("host", "string"),
                    former("port", "integer"),
                    former("timeout", "number"),
                    former("username", "string", true),
                    former("password", "string", true),
                    former("database", "integer"),
                    former("ssl", "boolean"),
                    former("ssl_verify", "boolean"),
                    former("server_name", "string"),
                },
                custom_validator = check_limits,
            },
        },
    },
    entity_checks = {
        {
            at_least_one_of = {
                "config.second",
                "config.minute",
                "config.hour",
                "config.day",
                "config.month",
                "config.year",
            },
        },
        {
            conditional = {
                if_field = "config.limit_by",
                if_match = { eq = "header" },
                then_field = "config.header_name",
                then_match = { required = true },
            },
        },
        {
            conditional = {
                if_field = "config.limit_by",
                if_match = { eq = "path" },
                then_field = "config.path",
                then_match = { required = true },
            },
        },
    },
}
