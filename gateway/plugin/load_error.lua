--- What Lua says of a file that cannot be loaded, as one line for people.
-- @module gateway.plugin.load_error

local _M = {}

-- Whether a place that Lua names is in this file: of a long path it shows the end.
local function is_in(place, path)
    local tail = place:match("^%.%.%.(.+)$")
    return place == path or (tail ~= nil and path:sub(-#tail) == tail)
end

--- Words what `require` of a plugin's file has thrown: without the list of the places that were
-- searched for a module, and with the file's own name in the place of its path.
-- @tparam string file its name, such as `handler.lua`
-- @tparam string module such as `plugins.hello.handler`
-- @param err what was thrown
-- @treturn string one line, which begins with the file
function _M.text(file, module, err)
    local text = tostring(err)
        :gsub("error loading module '[^']*' from file '[^']*':\n\t", "")
        :gsub("(module '[^']*' not found):\n.*", "%1")
        :gsub("%s*\n%s*", " ")
    local place, rest = text:match("^(.-%.lua)(:%d+: .*)$")
    local path = package.searchpath(module, package.path)
    if place and path and is_in(place, path) then
        return file .. rest
    end
    return file .. ": " .. text
end

return _M
