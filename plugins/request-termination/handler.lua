--- Answers requests itself. It runs in C: plugins/request-termination/sluice_request_termination.c.
-- @module plugins.request-termination.handler

local cjson = require("cjson")
local packed = require("sluice.ffi.packed")

local JSON = "application/json; charset=utf-8"

local MESSAGES = {
    [401] = "Unauthorized",
    [404] = "Not found",
    [405] = "Method not allowed",
    [500] = "An unexpected error occurred",
    [502] = "Bad Gateway",
    [503] = "Service unavailable",
}

local function given(value)
    return type(value) == "string" and value or nil
end

--- Content type and body of a response that is no echo; "": none.
local function response(config, message)
    if given(config.body) then
        return given(config.content_type) or "", config.body
    elseif message then
        return JSON, cjson.encode({ message = message })
    end
    return "", ""
end

return {
    VERSION = "0.1.0",
    PRIORITY = 2,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local message = given(config.message) or MESSAGES[config.status_code]
        local trigger = given(config.trigger)
        local content_type, body = response(config, message)
        local out = packed.new()
        out:number(config.status_code)
        out:number(config.echo and 1 or 0)
        out:text(content_type)
        out:text(body)
        out:text(message)
        out:text(trigger)
        -- A header's name is sought as it is, and with dashes.
        out:text(trigger and trigger:lower())
        out:text(trigger and trigger:lower():gsub("_", "-"))
        return out:bytes()
    end,
}
