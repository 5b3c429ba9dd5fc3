--- Configuration of the rate-limiting plugin, in Kong's layout.
-- @module plugins.rate-limiting.schema

local typedefs = require("gateway.schema.typedefs")
local periods = require("plugins.rate-limiting.periods")

local format = string.format

--- The counters of a node live in its own memory; shared ones come with the cluster.
local function check_policy(policy)
    if policy ~= "local" then
        local message = "policy '%s' is not supported by this version, only 'local' is"
        return nil, format(message, policy), true
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
    if config.sync_rate and config.sync_rate ~= -1 and config.policy ~= "redis" then
        return nil, "sync_rate can only be used with the redis policy"
    end
    return true
end

local function limit_field(period)
    return {
        type = "number",
        gt = 0,
        description = format(
            "Requests per %s (UTC). A longer period must not have a lower limit.",
            period
        ),
    }
end

local function text(description)
    return { type = "string", description = description }
end

-- What may be a reference to a vault, and is no secret.
local function reference(description, length)
    return {
        type = "string",
        len_min = length,
        referenceable = true,
        secret = false,
        description = description,
    }
end

-- What Kong's schema does not call a secret, though it is one.
local function secret(description)
    local field = reference(description, 0)
    field.secret = true
    return field
end

local function password(description)
    local field = secret(description)
    field.encrypted = true
    return field
end

local function flag(description, default)
    return { type = "boolean", required = false, default = default, description = description }
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
    description = "Authentication to Redis in a cloud.",
    fields = {
        { auth_provider = one_of("The cloud.", { "aws", "azure", "gcp" }) },
        { aws_access_key_id = reference("Id of the access key of AWS.", 0) },
        { aws_assume_role_arn = reference("ARN of the role of AWS that is assumed.", 0) },
        { aws_cache_name = reference("Name of the cache of ElastiCache.", 0) },
        { aws_is_serverless = flag("Whether that cache is serverless.") },
        { aws_region = reference("Region of AWS.", 0) },
        { aws_role_session_name = reference("Name of the session of the assumed role.", 0) },
        { aws_secret_access_key = secret("Secret of the access key of AWS.") },
        { azure_client_id = reference("Id of the client at Azure.", 0) },
        { azure_client_secret = secret("Secret of the client at Azure.") },
        { azure_tenant_id = reference("Id of the tenant at Azure.", 0) },
        { gcp_service_account_json = secret("Key of the service account of GCP, as JSON.") },
    },
}

-- Settings of the policy "redis". They may stand in a file, as in every file that Kong's tools
-- export; no policy of this version reads them.
local redis = {
    type = "record",
    required = true,
    description = "Settings of the policy `redis`, accepted for compatibility with Kong's files. "
        .. "No effect.",
    fields = {
        { host = typedefs.host({ description = "Host of the server." }) },
        { port = number("Port of the server.", 6379, PORTS) },
        { timeout = number("Milliseconds for connecting, writing and reading.", 2000, TIMES_MS) },
        { username = reference("Name of the user.") },
        { password = password("Password of the user.") },
        { database = number("Number of the database.", 0) },
        { ssl = flag("Use TLS.", false) },
        { ssl_verify = flag("Verify the certificate of the server.", false) },
        {
            server_name = typedefs.sni({
                required = false,
                description = "Server name of the TLS handshake.",
            }),
        },
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
        { sentinel_username = reference("Name of the user at the sentinels.") },
        { sentinel_password = secret("Password of the user at the sentinels.") },
    },
}

--- A field of `redis` as it stood beside it before Kong 3.6: redis_host and so on.
local function former(name, kind, length, is_secret)
    return {
        ["redis_" .. name] = {
            type = kind,
            len_min = length,
            -- its value is in no message then
            referenceable = is_secret,
            deprecation = {
                replaced_with = { { path = { "redis", name } } },
                message = format(
                    "rate-limiting: config.redis_%s is deprecated, use config.redis.%s",
                    name,
                    name
                ),
                removal_in_version = "4.0",
            },
            description = "Former name of `redis." .. name .. "`.",
            func = function(value)
                return { redis = { [name] = value } }
            end,
        },
    }
end

local function demands(field, value, another)
    return {
        conditional = {
            if_field = "config." .. field,
            if_match = { eq = value },
            then_field = "config." .. another,
            then_match = { required = true },
        },
    }
end

return {
    name = "rate-limiting",
    page_skips = "^redis[._]",
    description = "Limits the number of requests per second, minute, hour, day, month or year.",
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "The limits, and how requests are counted.",
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
                            description = "How requests are grouped: `header` is the value of "
                                .. "`header_name`, `path` is exactly the path in `path`. If a "
                                .. "request has no such value, the client address is used.",
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
                            len_min = 0,
                            one_of = { "local", "cluster", "redis" },
                            custom_validator = check_policy,
                            description = "Where counters are kept: `local` is shared memory of "
                                .. "this node. `cluster` and `redis` are not supported by this "
                                .. "version.",
                        },
                    },
                    {
                        fault_tolerant = {
                            type = "boolean",
                            required = true,
                            default = true,
                            description = "Allow requests that cannot be counted; otherwise they "
                                .. "are answered 500.",
                        },
                    },
                    { redis = redis },
                    {
                        hide_client_headers = {
                            type = "boolean",
                            required = true,
                            default = false,
                            description = "Do not send `RateLimit-*`, `X-RateLimit-*` and "
                                .. "`Retry-After` headers.",
                        },
                    },
                    {
                        error_code = {
                            type = "integer",
                            -- Others would end or break the client's HTTP.
                            between = { 200, 599 },
                            default = 429,
                            description = "Status of the response to a refused request.",
                        },
                    },
                    {
                        error_message = {
                            type = "string",
                            default = "API rate limit exceeded",
                            description = "Message in the response to a refused request.",
                        },
                    },
                    {
                        sync_rate = {
                            type = "number",
                            required = true,
                            default = -1,
                            description = "For the policy `redis`. Must be -1.",
                        },
                    },
                },
                shorthand_fields = {
                    former("host", "string"),
                    former("port", "integer"),
                    former("password", "string", 0, true),
                    former("username", "string", nil, true),
                    former("ssl", "boolean"),
                    former("ssl_verify", "boolean"),
                    former("server_name", "string"),
                    former("timeout", "integer"),
                    former("database", "integer"),
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
        demands("policy", "redis", "redis.host"),
        demands("policy", "redis", "redis.port"),
        demands("policy", "redis", "redis.timeout"),
        demands("limit_by", "header", "header_name"),
        demands("limit_by", "path", "path"),
    },
}
