--- `kong.db.schema.typedefs`: the field types under the name by which plugins written for Kong
-- require them.
-- @module gateway.schema.kong_typedefs

local typedefs = require("gateway.schema.typedefs")

return setmetatable({
    ttl = typedefs.ttl({ type = "number" }),
}, { __index = typedefs })
