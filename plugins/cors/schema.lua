--- Configuration of the cors plugin, in Kong's layout.
-- @module plugins.cors.schema

local core = require("sluice.ffi.core")
local pattern = require("plugins.cors.origin").pattern
local typedefs = require("gateway.schema.typedefs")

local METHODS = { "GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS", "TRACE", "CONNECT" }

local function check_origin(value)
    if value == "*" then
        return true
    end
    -- As it is, and as the C runs it.
    local ok, err = core.check_pattern(value, true)
    if ok then
        ok, err = core.check_pattern(pattern(value) or value, true)
    end
    return ok, err and ("'%s' is not a valid regex (%s)"):format(value, err)
end

local function names(description)
    return { type = "array", elements = { type = "string" }, description = description }
end

local function flag(description)
    return { type = "boolean", required = true, default = false, description = description }
end

return {
    name = "cors",
    description = "Tells browsers which origins may use a service, and answers their preflight "
        .. "requests.",
    fields = {
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "What is allowed to pages of other origins.",
                fields = {
                    {
                        origins = {
                            type = "array",
                            elements = {
                                type = "string",
                                anchored_regex = pattern,
                                custom_validator = check_origin,
                            },
                            description = "Origins that are allowed: texts, such as "
                                .. "`https://shop.example.com`, or regular expressions "
                                .. "that match a whole origin, or its host where they have no "
                                .. "`:`. All if not set, or with `*`.",
                        },
                    },
                    {
                        headers = names(
                            "Request headers that are allowed. If not set, those that a preflight "
                                .. "asks for."
                        ),
                    },
                    { exposed_headers = names("Response headers that scripts may read.") },
                    {
                        methods = {
                            type = "array",
                            default = METHODS,
                            elements = { type = "string", one_of = METHODS },
                            description = "Methods that are allowed.",
                        },
                    },
                    {
                        max_age = {
                            type = "number",
                            description = "Seconds for which a browser may keep the answer to a "
                                .. "preflight.",
                        },
                    },
                    {
                        credentials = flag(
                            "Allow cookies, client certificates and `Authorization`. If all "
                                .. "origins are allowed, the response names the one that asks."
                        ),
                    },
                    {
                        private_network = flag(
                            "Allow public sites to use a service in a private network."
                        ),
                    },
                    {
                        preflight_continue = flag(
                            "Send preflight requests to the service, whose answer is unchanged."
                        ),
                    },
                },
            },
        },
    },
}
