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
        description = format(
            "Requests in %s of UTC. A longer period must not have a smaller limit.",
            period == "hour" and "an hour" or "a " .. period
        ),
    }
end

local function text(description, length)
    return { type = "string", len_min = length, description = description }
end

local function secret(description, length)
    return {
        type = "string",
        len_min = length,
        referenceable = true,
        description = description,
    }
end

local function flag(description, default)
    return { type = "boolean", default = default, description = description }
end

local function number(description, default, between)
    return { type = "integer", default = default, between = between, description = description }
end

local PORTS = { 0, 65535 }
local TIMES_MS = { 0, 2147483646 }

local function servers(description)
    return {
        type = "array",
        description = description,
        elements = {
            type = "record",
            fields = {
                { host = typedefs.host({ description = "Host of a node." }) },
                { ip = typedefs.host({ description = "Address of a node." }) },
                { port = number("Port of a node.", 6379, PORTS) },
            },
        },
    }
end

local function addresses(description)
    return { type = "array", elements = { type = "string" }, description = description }
end

local function one_of(description, list)
    return { type = "string", one_of = list, description = description }
end

local cloud_authentication = {
    type = "record",
    description = "How the gateway proves to a cloud's Redis who it is.",
    fields = {
        { auth_provider = one_of("The cloud.", { "aws", "azure", "gcp" }) },
        { aws_access_key_id = secret("Id of the access key of AWS.", 0) },
        { aws_assume_role_arn = secret("ARN of the role of AWS that is assumed.", 0) },
        { aws_cache_name = secret("Name of the cache of ElastiCache.", 0) },
        { aws_is_serverless = flag("Whether that cache is serverless.") },
        { aws_region = secret("Region of AWS.", 0) },
        { aws_role_session_name = secret("Name of the session of the assumed role.", 0) },
        { aws_secret_access_key = secret("Secret of the access key of AWS.", 0) },
        { azure_client_id = secret("Id of the client at Azure.", 0) },
        { azure_client_secret = secret("Secret of the client at Azure.", 0) },
        { azure_tenant_id = secret("Id of the tenant at Azure.", 0) },
        { gcp_service_account_json = secret("Key of the service account of GCP, as JSON.", 0) },
    },
}

-- Settings of the policy "redis". They may stand in a file, as in every file that Kong's tools
-- export; no policy of this version reads them.
local redis = {
    type = "record",
    required = true,
    description = "Settings of the policy `redis`, kept for files of Kong: without effect.",
    fields = {
        {
            host = typedefs.host({ referenceable = true, description = "Host of the server." }),
        },
        { port = number("Port of the server.", 6379, PORTS) },
        { timeout = number("Milliseconds for connecting, writing and reading.", 2000, TIMES_MS) },
        { username = secret("Name of the user.", 1) },
        { password = secret("Password of the user.", 0) },
        { database = number("Number of the database.", 0) },
        { ssl = flag("Use TLS.", false) },
        { ssl_verify = flag("Verify the certificate of the server.", false) },
        { server_name = text("Server name of the TLS handshake.") },
        -- Of Kong's later versions and of its Enterprise.
        { connect_timeout = number("Milliseconds for connecting.", nil, TIMES_MS) },
        { send_timeout = number("Milliseconds for writing.", nil, TIMES_MS) },
        { read_timeout = number("Milliseconds for reading.", nil, TIMES_MS) },
        { keepalive_pool_size = number("Idle connections that a worker keeps.") },
        { keepalive_backlog = number("Requests that may wait for a connection.") },
        { connection_is_proxied = flag("Whether a proxy stands before the servers.") },
        { cloud_authentication = cloud_authentication },
        { cluster_nodes = servers("Nodes of a cluster.") },
        { cluster_addresses = addresses("Nodes of a cluster, in older files.") },
        { cluster_max_redirections = number("Redirections by a cluster that are followed.") },
        { sentinel_nodes = servers("Sentinels.") },
        { sentinel_addresses = addresses("Sentinels, in older files.") },
        { sentinel_master = text("Name of the primary that the sentinels know.") },
        {
            sentinel_role = one_of("Which server the sentinels are asked for.", {
                "master",
                "slave",
                "any",
            }),
        },
        { sentinel_username = secret("Name of the user at the sentinels.", 1) },
        { sentinel_password = secret("Password of the user at the sentinels.", 0) },
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
            description = "Former name of `redis." .. name .. "`.",
            func = function(value)
                return { redis = { [name] = value } }
            end,
        },
    }
end

return {
    name = "rate-limiting",
    description = "Limits how many requests may be made in a second, minute, hour, day, month or "
        .. "year.",
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "The limits, and what they count.",
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
                            description = "Whose requests are counted together: `header` is the "
                                .. "value of `header_name`, `path` requests for exactly `path`. "
                                .. "Where a request has no such thing, the address of the client "
                                .. "counts.",
                        },
                    },
                    {
                        header_name = typedefs.header_name({
                            description = "Header for `limit_by: header`.",
                        }),
                    },
                    {
                        path = typedefs.path({ description = "Path for `limit_by: path`." }),
                    },
                    {
                        policy = {
                            type = "string",
                            default = "local",
                            one_of = { "local", "cluster", "redis" },
                            custom_validator = check_policy,
                            description = "Where the counters are: `local` is the memory that the "
                                .. "workers of this node share. `cluster` and `redis` are not "
                                .. "supported by this version.",
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
                            description = "Send no `RateLimit-*`, `X-RateLimit-*` and "
                                .. "`Retry-After` headers.",
                        },
                    },
                    {
                        error_code = {
                            type = "integer",
                            -- Others would end or break the client's HTTP.
                            between = { 200, 599 },
                            default = 429,
                            description = "Status of the answer to a refused request.",
                        },
                    },
                    {
                        error_message = {
                            type = "string",
                            default = "API rate limit exceeded",
                            description = "Message of the answer to a refused request.",
                        },
                    },
                    {
                        sync_rate = {
                            type = "number",
                            required = true,
                            default = -1,
                            description = "For the policy `redis`. Has to be -1.",
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
