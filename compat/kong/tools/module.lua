--- Modules that may not be there: `kong.tools.module`.
-- @module kong.tools.module

local _M = {}

--- Loads a module, if there is one.
-- @tparam string name
-- @treturn boolean whether it is there
-- @treturn any what it returns; or why it is not found
-- @raise it is there, and cannot be loaded: "error loading module '...':", a line, and why
-- @phases any
function _M.load_module_if_exists(name)
    local ok, found = xpcall(require, debug.traceback, name)
    if ok then
        return true, found
    elseif type(found) == "string" then
        if found:find("module '" .. name .. "' not found", 1, true) then
            return false, found
        end
    end
    error(("error loading module '%s':\n%s"):format(name, tostring(found)))
end

return _M
