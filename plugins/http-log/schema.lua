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
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                fields = {
                    {
                        http_endpoint = {
                            type = "string",
                            required = true,
                            referenceable = true,
                            custom_validator = check_endpoint,
                            description = "URL of the log server, http or https; a user name and "
                                .. "password in it become an Authorization header.",
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
                            description = "Milliseconds for one request: its name, connecting, "
                                .. "writing and reading together.",
                        },
                    },
                    {
                        keepalive = {
                            type = "number",
                            default = 60000,
                            between = { 0, 2 ^ 31 - 2 },
                            description = "Milliseconds that an idle connection is kept; 0: none "
                                .. "is.",
                        },
                    },
                    {
                        retry_count = {
                            type = "integer",
                            description = "Without effect; queue.max_retry_time limits retries.",
                        },
                    },
                    {
                        queue_size = {
                            type = "integer",
                            between = { 1, 1000000 },
                            description = "Former name of queue.max_batch_size, and before it "
                                .. "where it is set.",
                        },
                    },
                    {
                        flush_timeout = {
                            type = "number",
                            between = { 0, 3600 },
                            description = "Former name of queue.max_coalescing_delay, and before "
                                .. "it where it is set.",
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
                            description = "Headers of the requests to the log server.",
                        },
                    },
                    { queue = typedefs.queue },
                    {
                        custom_fields_by_lua = {
                            type = "map",
                            keys = { type = "string" },
                            values = { type = "string" },
                            custom_validator = check_custom_fields,
                            description = "Not supported by this version: refused when set.",
                        },
                    },
                },
                custom_validator = check_config,
            },
        },
    },
}
