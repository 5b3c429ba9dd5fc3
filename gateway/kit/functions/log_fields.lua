--- Members of log entries that Lua of a configuration makes: `custom_fields_by_lua` of log plugins
-- in C. Their configurations that have some run this in the log phase, before C makes the entry.
-- @module gateway.kit.functions.log_fields

local functions = require("gateway.kit.functions")

local error = error
local next = next
local pairs = pairs
local pcall = pcall
local tostring = tostring
local type = type

local _M = {}

--- The phases that a configuration has in Lua.
-- @tparam table config
-- @treturn {string,...}
-- @phases any
function _M.lua_phases(config)
    local fields = config.custom_fields_by_lua
    return type(fields) == "table" and next(fields) and { "log" } or {}
end

-- Compiled each time, as in Kong: the globals of a code are those of one request.
local function set(name, code)
    local value = functions.compile(code)()
    require("gateway.kit.log.serialize").set_serialize_value(name, value)
end

--- Sets the members, by `kong.log.set_serialize_value`, as in Kong: dots in a name stand between
-- those of tables in each other. Does not yield.
-- @tparam table conf
-- @raise what a code has thrown, with its field; the others' members are set
-- @phases log
function _M.log(_, conf)
    local wrong
    for name, code in pairs(conf.custom_fields_by_lua or {}) do
        local ok, err = pcall(set, name, code)
        if not ok then
            -- It may have texts of the request, which are to end no line of the log.
            local shown = tostring(err):gsub("%c", "?")
            wrong = wrong or ("custom_fields_by_lua.%s: %s"):format(name, shown)
        end
    end
    if wrong then
        error(wrong, 0)
    end
end

return _M
