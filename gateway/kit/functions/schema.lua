--- Schemas of plugins whose configuration has Lua functions, by phases.
-- @module gateway.kit.functions.schema

local typedefs = require("gateway.schema.typedefs")

local load = load

local _M = {}

-- The fields, and what is said of each.
local PHASES = {
    {
        "certificate",
        "Code that runs in handshakes, of a configuration that is bound to nothing.",
    },
    {
        "rewrite",
        "Code that runs before the request is routed, of a configuration that is bound to nothing.",
    },
    { "access", "Code that runs before the service is asked; it may answer in its place." },
    { "header_filter", "Code that runs when the head of the response is there." },
    { "body_filter", "Code that runs for each piece of the response's body." },
    { "log", "Code that runs when the request is over." },
}

--- The schema of such a plugin.
-- @tparam string name of the plugin
-- @tparam string description
-- @treturn table
-- @phases any
function _M.schema(name, description)
    local function check(code)
        local chunk, err = load(code, nil, "t")
        return chunk ~= nil or nil, err and ("error parsing %s: %s"):format(name, err)
    end
    local fields, paths = {}, {}
    for i, phase in ipairs(PHASES) do
        fields[i] = {
            [phase[1]] = {
                type = "array",
                required = true,
                default = {},
                elements = { type = "string", required = false, custom_validator = check },
                description = phase[2],
            },
        }
        paths[i] = "config." .. phase[1]
    end
    return {
        name = name,
        description = description,
        fields = {
            { consumer = typedefs.no_consumer },
            { protocols = typedefs.protocols },
            {
                config = {
                    type = "record",
                    required = true,
                    description = "Code by phase: of each phase a list, which runs in its order.",
                    fields = fields,
                },
            },
        },
        entity_checks = { { at_least_one_of = paths } },
    }
end

return _M
