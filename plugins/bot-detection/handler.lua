--- Refuses bots. It runs in C: plugins/bot-detection/sluice_bot_detection.c.
-- @module plugins.bot-detection.handler

local packed = require("sluice.ffi.packed")
local pattern = require("plugins.bot-detection.pattern")

local function texts(list)
    local out = {}
    for i, text in ipairs(type(list) == "table" and list or {}) do
        out[i] = pattern.with_case(text)
    end
    return out
end

return {
    VERSION = "0.1.0",
    PRIORITY = 2500,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local out = packed.new()
        out:list(texts(config.allow))
        out:list(texts(config.deny))
        return out:bytes()
    end,

    --- The regular expressions that it runs (gateway.entities.patterns).
    -- @tparam table config checked by the schema
    -- @treturn {table,...}
    patterns = function(config)
        local out = {}
        for _, field in ipairs({ "allow", "deny" }) do
            for _, text in ipairs(texts(config[field])) do
                out[#out + 1] = { text = text, is_anchored = false, field = field }
            end
        end
        return out
    end,
}
