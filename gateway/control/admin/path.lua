--- The path of a request of the admin listener.
-- @module gateway.control.admin.path

local ngx = ngx

local _M = {}

--- Cuts a raw path at its slashes, then unescapes, so that a name may hold an escaped slash.
-- @tparam string path
-- @treturn {string,...}|nil segments, nil if one is empty; a slash at the end is passed over
-- @phases any within nginx
function _M.split(path)
    local segments = {}
    for segment in path:gsub("/$", ""):gmatch("/([^/]*)") do
        if segment == "" then
            return nil
        end
        segments[#segments + 1] = ngx.unescape_uri(segment)
    end
    return segments
end

return _M
