--- lua-kong-nginx-module's variable API on sluice.var.
--
-- The same name, functions and errors; `lua_kong_load_var_index` is a name of our directive. What
-- differs: values are never stale, nothing drops out of the index, `get` and `set` work with any
-- variable, and `patch_metatable` leaves the functions of `ngx.req` alone.
-- @module resty.kong.var

local var = require("sluice.var")

local get_phase = ngx.get_phase

local patched = false

local _M = {}

local function init_only(name)
    if get_phase() ~= "init" then
        error(name .. " can only be called in init phase")
    end
end

--- Lets `ngx.var` read and write indexed variables by number: `sluice.var.install`.
-- @raise outside `init_by_lua`, and where it was called before
function _M.patch_metatable()
    init_only("patch_metatable")
    if patched then
        error("patch_metatable should only be called once")
    end
    patched = true
    var.install()
end

--- The variables that the configuration indexes.
-- @treturn table name -> a number, of no use elsewhere
-- @raise outside `init_by_lua`
function _M.load_indexes()
    init_only("load_indexes")
    return var.indexed()
end

--- Reads a variable.
-- @tparam string name
-- @treturn string|nil
-- @raise as `ngx.var`
_M.get = var.get

--- Writes a variable.
-- @tparam string name
-- @tparam any value
-- @raise as `ngx.var`
_M.set = var.set

return _M
