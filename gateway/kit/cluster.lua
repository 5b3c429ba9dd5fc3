--- `kong.cluster`: the nodes that share a configuration.
-- @module gateway.kit.cluster

local configuration = require("gateway.kit.configuration").view
local pdk = require("gateway.pdk")

local _M = {}

local function byte_as_hex(byte)
    return ("%02x"):format(byte:byte())
end

--- The id of the store, the same on all nodes that have a copy of it. Does not yield.
-- @treturn string|nil a UUID; nil: the configuration is a file
-- @treturn string|nil "no configuration yet"
-- @phases any but init_worker
function _M.get_id()
    if configuration.database == "off" then
        return nil
    end
    local id = pdk.store().id()
    if not id then
        return nil, "no configuration yet"
    end
    local hex = id:gsub(".", byte_as_hex)
    return (hex:gsub("^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)", "%1-%2-%3-%4-"))
end

return _M
