--- Where Lua looks for modules, in nginx and on the command line: one order for both.
--
-- Sluice's own come first, so that nobody replaces a part of the gateway; then the user's folders
-- and the machine's; and at last `compat`, which lends other libraries' names to ours: whoever has
-- installed such a library gets that one.
-- @module cli.nginx.package_path

local format = string.format

local OWN = "%s/?.lua;%s/?/init.lua;%s/lib/?.lua;%s/lib/?/init.lua"
local COMPAT = "%s/compat/?.lua;%s/compat/?/init.lua"

local _M = {}

--- The whole search path.
-- @tparam string root Sluice's own directory
-- @tparam string others the user's folders and the machine's
-- @treturn string
function _M.text(root, others)
    local own, compat = format(OWN, root, root, root, root), format(COMPAT, root, root)
    return (format("%s;%s;%s", own, others, compat):gsub(";;;+", ";;"))
end

--- Adds the user's folders where `text` has them.
-- @tparam string path what `text` has returned
-- @tparam string users of the setting lua_package_path
-- @treturn string
function _M.add(path, users)
    local before, compat = path:match("^(.*)(;[^;]*;[^;]*)$")
    local added = users:gsub("^;+", ""):gsub(";+$", "")
    return added == "" and path or before .. ";" .. added .. compat
end

return _M
