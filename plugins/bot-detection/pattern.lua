--- Regular expressions of bot-detection.
-- @module plugins.bot-detection.pattern

local core = require("sluice.ffi.core")

local _M = {}

--- The same for the core, whose headers' patterns have no case: with it.
-- @tparam string pattern
-- @treturn string
function _M.with_case(pattern)
    return "(?-i)" .. pattern
end

--- Whether the core takes a pattern.
-- @tparam string pattern
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check(pattern)
    local ok, err = core.check_pattern(pattern, false)
    if ok then
        ok, err = core.check_pattern(_M.with_case(pattern), false)
    end
    return ok, err and ("not a valid regex: %s (%s)"):format(pattern, err)
end

return _M
