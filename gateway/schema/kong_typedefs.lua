--- `kong.db.schema.typedefs`: the field types under the name by which plugins written for Kong
-- require them.
-- @module gateway.schema.kong_typedefs

local typedefs = require("gateway.schema.typedefs")

-- What such a plugin does with Lua code in its configuration is its own.
return setmetatable({
    lua_code = typedefs.lua_expressions,
    ttl = typedefs.ttl({ type = "number" }),
}, { __index = typedefs })
