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
        -- In a path a plus is one; unescape_uri makes it a blank, as in forms.
        segments[#segments + 1] = ngx.unescape_uri((segment:gsub("%+", "%%2B")))
    end
    return segments
end

return _M
