--- `?dry_run=1` of a write: nothing is changed, and the answer is what would be.
-- @module gateway.admin.dry_run

local nearest = require("sluice.nearest")

local NAME = "dry_run"

local _M = {}

--- Takes the argument of a write. One whose name is nearly this one is refused: whoever sends it
-- wants nothing changed.
-- @tparam table args arguments of the query
-- @treturn string|nil what is wrong with them
-- @phases content
function _M.read(args)
    for name in pairs(args) do
        if name ~= NAME and nearest.find(name:lower(), { NAME }) then
            return ("unknown argument %s, did you mean %s"):format(name, NAME)
        end
    end
    local value = args[NAME]
    if value ~= nil and value ~= "0" and value ~= "1" then
        return NAME .. " must be 0 or 1, given once"
    end
    ngx.ctx.is_dry_run = value == "1"
end

--- Whether nothing is to be changed.
-- @treturn boolean
-- @phases content
function _M.is_asked()
    return ngx.ctx.is_dry_run
end

return _M
