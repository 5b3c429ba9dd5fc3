--- Pieces of nginx.conf that several servers have.
-- @module cli.nginx.blocks

local _M = {}

-- What nginx answers by itself goes through the gateway's error page, in the client's format. 494
-- is nginx's own code for a too large header, 497 that for a request without TLS where TLS is
-- spoken.
local ERROR_CODES = "400 404 405 408 411 412 413 414 417 500 501 502 503 504 505"

--- Where a request goes that nginx refuses before it has read its header. It may have no URI yet,
-- and such a one nginx sends to no named location (it answers with its own 500 instead). No client
-- reaches this URI: nginx merges the slashes of theirs.
_M.REFUSED = "//sluice_refused"

--- Has what nginx answers by itself answered elsewhere.
-- @tparam string target
-- @treturn string directives
function _M.error_pages(target)
    local line = "error_page %s %s;\nerror_page 494 =494 %s;\nerror_page 497 =497 %s;"
    return line:format(ERROR_CODES, target, target, target)
end

--- Has a function of the gateway called in a phase.
-- @tparam string phase
-- @tparam string name of the function
-- @treturn string a directive
function _M.call(phase, name)
    return ("%s_by_lua_block { package.loaded.gateway.%s() }"):format(phase, name)
end

return _M
