--- Configuration of the http-log plugin, in Kong's layout.
-- @module plugins.http-log.schema

local endpoint = require("plugins.http-log.endpoint")
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

local function check_custom_fields(fields)
    return next(fields) == nil or nil, "custom_fields_by_lua is not supported by this version"
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
    description = "Sends an entry about each request to a log server, in batches, and again until "
        .. "it works.",
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "Where entries go, and how.",
                fields = {
                    {
                        http_endpoint = {
                            type = "string",
                            required = true,
                            referenceable = true,
                            custom_validator = check_endpoint,
                            description = "URL of the log server, `http` or `https`. A user name "
                                .. "and password in it become an `Authorization` header; the "
                                .. "query is kept. Names are resolved by the system, again every "
                                .. "30 seconds. The certificate of an https server is not "
                                .. "verified, as in Kong.",
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
                            description = "Milliseconds for one request: resolving the name, "
                                .. "connecting, writing and reading the response together. Of "
                                .. "several addresses each that does not answer takes its share.",
                        },
                    },
                    {
                        keepalive = {
                            type = "number",
                            default = 60000,
                            between = { 0, 2 ^ 31 - 2 },
                            description = "Milliseconds that an idle connection is kept; 0 keeps "
                                .. "none.",
                        },
                    },
                    {
                        retry_count = {
                            type = "integer",
                            description = "Without effect: `queue.max_retry_time` limits retries.",
                        },
                    },
                    {
                        queue_size = {
                            type = "integer",
                            between = { 1, 1000000 },
                            description = "Former name of `queue.max_batch_size`, which it "
                                .. "overrides.",
                        },
                    },
                    {
                        flush_timeout = {
                            type = "number",
                            between = { 0, 3600 },
                            description = "Former name of `queue.max_coalescing_delay`, which it "
                                .. "overrides.",
                        },
                    },
                    {
                        headers = {
                            type = "map",
                            keys = typedefs.header_name({ match_none = refused_headers }),
                            values = {
                                type = "string",
                                referenceable = true,
                                custom_validator = check_header_value,
                            },
                            description = "Further headers of the requests, each with one value; "
                                .. "in files before format 3.0 also with an array of them, which "
                                .. "become one line. Not Host, Content-Length, Content-Type, "
                                .. "Transfer-Encoding and Connection, nor Authorization where "
                                .. "`http_endpoint` has a user.",
                        },
                    },
                    { queue = typedefs.queue },
                    {
                        custom_fields_by_lua = {
                            type = "map",
                            keys = { type = "string" },
                            values = { type = "string" },
                            custom_validator = check_custom_fields,
                            description = "Refused unless empty: this version runs no code from a "
                                .. "configuration.",
                        },
                    },
                },
                custom_validator = check_config,
            },
        },
    },
}
