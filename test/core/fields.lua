--- The Lua that module/core/text/fields.h takes the place of, as test/core/fields.c asks it.
--
-- Called with the path of the oracle; what `ngx` has of it is here.

local KINDS = { "from_form", "from_json", "from_multipart" }

local function char_of(hex)
    return string.char(tonumber(hex, 16))
end

local ngx = {
    unescape_uri = function(text)
        return (text:gsub("%%(%x%x)", char_of))
    end,
}

local load = assert(loadfile(...))
local oracle = setfenv(load, setmetatable({ ngx = ngx }, { __index = _G }))()

--- @treturn number|nil how many fields have the name; nil: this is no text of its kind
-- @treturn string|nil the first one's value, if it is a string
-- @treturn string|nil the text without them, if there are any
return function(kind, text, content_type, name)
    local document = oracle[KINDS[kind]](text, content_type)
    if not document then
        return nil
    end
    local value, count = oracle.lookup(document, name)
    return count, type(value) == "string" and value or nil, oracle.without(document, name)
end
