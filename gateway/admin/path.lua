--- The path of a request of the admin listener.
-- @module gateway.admin.path

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

--- The path that segments have come from, as tables of paths have it. A slash in a segment was
-- escaped, and stays so: it leads to none of them.
-- @tparam {string,...} segments
-- @treturn string without a slash at its beginning
-- @phases any
function _M.join(segments)
    local parts = {}
    for i, segment in ipairs(segments) do
        parts[i] = segment:gsub("/", "%%2F")
    end
    return table.concat(parts, "/")
end

return _M
