--- Configuration of the forward-auth plugin.
-- @module plugins.forward-auth.schema

local endpoint = require("sluice.http_endpoint")
local typedefs = require("gateway.schema.typedefs")

-- What says where a message ends, or whose it is: never another server's to say.
local FRAMING = {
    ["connection"] = true,
    ["content-length"] = true,
    ["host"] = true,
    ["keep-alive"] = true,
    ["te"] = true,
    ["trailer"] = true,
    ["transfer-encoding"] = true,
    ["upgrade"] = true,
}

local function check_url(url)
    local parsed, err = endpoint.parse(url)
    if not parsed then
        return nil, err
    elseif url:find("%c") then
        return nil, "invalid url"
    elseif parsed.userinfo then
        return nil, "must not have a user"
    end
    return true
end

local function check_name(name)
    if FRAMING[name:lower()] then
        return nil, ("cannot contain '%s' header"):format(name)
    end
    return typedefs.header_name.custom_validator(name)
end

-- What the server gets of the gateway's own.
local function check_asked(name)
    if name:lower():find("^x[_-]forwarded[_-]") then
        return nil, "X-Forwarded-* headers are the gateway's"
    end
    return check_name(name)
end

local function names(default, description, check)
    return {
        type = "array",
        required = true,
        default = default,
        elements = typedefs.header_name({ custom_validator = check or check_name }),
        description = description,
    }
end

return {
    name = "forward-auth",
    description = "Asks a server of yours, for each request, whether it may pass.",
    fields = {
        { consumer = typedefs.no_consumer },
        { consumer_group = typedefs.no_consumer_group },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "The server that is asked, and what goes to it and comes from it.",
                fields = {
                    {
                        url = {
                            type = "string",
                            required = true,
                            custom_validator = check_url,
                            description = "URL that is asked by GET, `http` or `https`. A status "
                                .. "of 200 to 299 lets the request pass, one of 300 to 499 is "
                                .. "the client's answer, and all else answers 503.",
                        },
                    },
                    {
                        request_headers = names(
                            { "Authorization", "Cookie" },
                            "Headers of the client's request that the server gets, with all lines.",
                            check_asked
                        ),
                    },
                    {
                        upstream_headers = names(
                            {},
                            "Headers of the server's answer that the service gets, in the place of "
                                .. "the client's of these names; where the answer has none, the "
                                .. "service gets none."
                        ),
                    },
                    {
                        pass_headers = names(
                            {},
                            "Headers of an answer that lets a request pass that the client gets "
                                .. "with its response; not of one out of the cache."
                        ),
                    },
                    {
                        refusal_headers = names({
                            "Cache-Control",
                            "Content-Type",
                            "Location",
                            "Set-Cookie",
                            "WWW-Authenticate",
                        }, "Headers of an answer that refuses a request that the client gets."),
                    },
                    {
                        timeout = {
                            type = "integer",
                            required = true,
                            default = 5000,
                            between = { 1, 600000 },
                            description = "Milliseconds for all of it: the name's address, "
                                .. "connecting, asking and the whole answer.",
                        },
                    },
                    {
                        keepalive = {
                            type = "integer",
                            required = true,
                            default = 60000,
                            between = { 0, 2 ^ 31 - 2 },
                            description = "Milliseconds that an idle connection to the server is "
                                .. "kept open; 0 closes it after each request.",
                        },
                    },
                    {
                        tls_verify = {
                            type = "boolean",
                            required = true,
                            default = true,
                            description = "Verify the certificate of an https server, by the CAs "
                                .. "of the setting `proxy_ssl_trusted_certificate`.",
                        },
                    },
                    {
                        cache_ttl = {
                            type = "number",
                            required = true,
                            default = 0,
                            between = { 0, 86400 },
                            description = "Seconds that an answer that lets a request pass counts "
                                .. "for others that would ask the same; 0: each request asks.",
                        },
                    },
                    {
                        cache_by = {
                            type = "string",
                            required = true,
                            default = "request",
                            one_of = { "request", "headers" },
                            description = "What is the same: `request`, all that the server gets, "
                                .. "or `headers`, `request_headers` and the host alone, whatever "
                                .. "method, path and address.",
                        },
                    },
                },
            },
        },
    },
}
