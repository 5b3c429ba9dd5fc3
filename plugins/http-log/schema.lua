--- Configuration of the http-log plugin, in Kong's layout.
-- @module plugins.http-log.schema

local endpoint = require("sluice.http_endpoint")
local typedefs = require("gateway.schema.typedefs")

-- What the plugin writes itself, and what would break the framing.
local OWN_HEADERS = { "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection" }

local function any_case(name)
    local pattern = name:gsub("%a", function(letter)
        return "[" .. letter:upper() .. letter:lower() .. "]"
    end)
    return "^" .. pattern:gsub("%-", "%%-") .. "$"
end

local refused_headers = {}
for i, name in ipairs(OWN_HEADERS) do
    refused_headers[i] =
        { pattern = any_case(name), err = ("cannot contain '%s' header"):format(name) }
end

local function check_endpoint(url)
    local parsed, err = endpoint.parse(url)
    return parsed ~= nil or nil, err
end

local function check_header_value(value)
    return not value:find("[%z\r\n]") or nil, "must not contain a line break"
end

--- The values of one header, which went out in one line.
local function one_line(values)
    for key, value in pairs(type(values) == "table" and values or {}) do
        if type(key) ~= "number" or type(value) ~= "string" then
            return values
        end
    end
    return type(values) == "table" and values[1] and table.concat(values, ", ") or values
end

--- A configuration of a file older than 3.0, where a header had an array of values.
local function migrate(config)
    if type(config.headers) ~= "table" then
        return config
    end
    local out = {}
    for key, value in pairs(config) do
        out[key] = value
    end
    out.headers = {}
    for header, values in pairs(config.headers) do
        out.headers[header] = one_line(values)
    end
    return out
end

local function former(name, instead, default)
    return {
        message = ("http-log: config.%s is deprecated, use config.queue.%s"):format(name, instead),
        removal_in_version = "4.0",
        old_default = default,
    }
end

local function check_config(config)
    local parsed = type(config.http_endpoint) == "string" and endpoint.parse(config.http_endpoint)
    if parsed and parsed.userinfo and type(config.headers) == "table" then
        for name in pairs(config.headers) do
            if name:lower() == "authorization" then
                return nil,
                    "specifying both an 'Authorization' header and user info in 'http_endpoint' "
                        .. "is not allowed"
            end
        end
    end
    return true
end

return {
    name = "http-log",
    migrate = migrate,
    description = "Sends a log entry for each request to an HTTP server, in batches, with retries.",
    fields = {
        { protocols = typedefs.protocols },
        {
            config = {
                type = "record",
                required = true,
                description = "Destination and transport of log entries.",
                fields = {
                    {
                        http_endpoint = {
                            type = "string",
                            required = true,
                            referenceable = true,
                            encrypted = true,
                            custom_validator = check_endpoint,
                            description = "URL of the log server, `http` or `https`. A user name "
                                .. "and password in it become an `Authorization` header; the query "
                                .. "is kept. Names are resolved by the system every 30 seconds. "
                                .. "The certificate of an https server is not verified, as in "
                                .. "Kong.",
                        },
                    },
                    {
                        method = {
                            type = "string",
                            default = "POST",
                            one_of = { "POST", "PUT", "PATCH" },
                            description = "Method of the requests to the log server.",
                        },
                    },
                    {
                        content_type = {
                            type = "string",
                            default = "application/json",
                            one_of = { "application/json", "application/json; charset=utf-8" },
                            description = "Media type of the requests to the log server.",
                        },
                    },
                    {
                        timeout = {
                            type = "number",
                            default = 10000,
                            between = { 1, 2 ^ 31 - 2 },
                            description = "Timeout in milliseconds of one request: name "
                                .. "resolution, connecting, writing and reading the response "
                                .. "together. If there are several addresses, each unreachable one "
                                .. "uses up a share of it.",
                        },
                    },
                    {
                        keepalive = {
                            type = "number",
                            default = 60000,
                            between = { 0, 2 ^ 31 - 2 },
                            description = "Time in milliseconds that an idle connection is kept "
                                .. "open; 0 closes it after each request.",
                        },
                    },
                    {
                        retry_count = {
                            type = "integer",
                            deprecation = former("retry_count", "max_retry_time", 10),
                            description = "No effect: `queue.max_retry_time` limits retries.",
                        },
                    },
                    {
                        queue_size = {
                            type = "integer",
                            deprecation = former("queue_size", "max_batch_size", 1),
                            between = { 1, 1000000 },
                            description = "Former name of `queue.max_batch_size`; overrides it.",
                        },
                    },
                    {
                        flush_timeout = {
                            type = "number",
                            deprecation = former("flush_timeout", "max_coalescing_delay", 2),
                            between = { 0, 3600 },
                            description = "Former name of `queue.max_coalescing_delay`; overrides "
                                .. "it.",
                        },
                    },
                    {
                        headers = {
                            type = "map",
                            keys = typedefs.header_name({ match_none = refused_headers }),
                            values = {
                                type = "string",
                                referenceable = true,
                                secret = true,
                                custom_validator = check_header_value,
                            },
                            description = "Additional request headers, each with one value; in "
                                .. "files before format 3.0 also an array of values, which are "
                                .. "joined into one line. Not allowed: Host, Content-Length, "
                                .. "Content-Type, Transfer-Encoding, Connection, and Authorization "
                                .. "if `http_endpoint` has a user.",
                        },
                    },
                    { queue = typedefs.queue },
                    { custom_fields_by_lua = typedefs.lua_code },
                },
                custom_validator = check_config,
            },
        },
    },
}
