--- Modules of the tree that is measured: an older one has some under other names.

-- The newest first.
local OLDER = {
    ["gateway.pdk"] = { "gateway.plugin.pdk" },
    ["gateway.writer"] = { "gateway.control.writer" },
    ["gateway.writer.maintenance"] = { "gateway.control.maintenance" },
    ["gateway.writer.queue"] = { "gateway.writer.apply", "gateway.control.apply" },
    ["gateway.writer.role"] = { "gateway.writer.apply", "gateway.control.apply" },
    ["gateway.writer.thread"] = { "gateway.control.writer_thread" },
    ["sluice.ffi.images"] = { "sluice.images" },
}

local _M = {}

--- The name that a module has in this tree.
-- @tparam string name its name in ours
-- @treturn string
function _M.name(name)
    for _, known in ipairs({ name, unpack(OLDER[name] or {}) }) do
        if package.searchpath(known, package.path) then
            return known
        end
    end
    return name
end

-- What the older ones' `apply` had in `loop`.
local function complete(apply, loop)
    function apply.in_turn(verb, ...)
        return loop.enqueue({ verb = verb, arguments = { ... } })
    end
    function apply.call(...)
        local writer, handle = _M.name("gateway.writer.thread"), loop.state().handle
        local ok, done, err = ngx.run_worker_thread("sluice_store", writer, "call", handle, ...)
        return ok and done, ok and err or { message = done }
    end
end

--- Loads a module by its name in our tree.
function _M.load(name)
    local found = _M.name(name)
    local module = require(found)
    if found:find("%.apply$") then
        complete(module, require((found:gsub("apply$", "loop"))))
    end
    return module
end

--- A plugin as an older tree has one: all of it in one table.
-- @tparam string name of a folder in plugins/
function _M.plugin(name)
    local handler = require("plugins." .. name .. ".handler")
    handler.name, handler.version, handler.priority = name, handler.VERSION, handler.PRIORITY
    handler.schema = require("plugins." .. name .. ".schema")
    return handler
end

return _M
