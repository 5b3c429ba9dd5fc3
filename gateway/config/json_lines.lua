--- The lines of a JSON text's values, for errors. A text of one line has none that would help.
-- @module gateway.config.json_lines

local cjson = require("cjson")
local json_keys = require("gateway.config.json_keys")

local find = string.find
local sub = string.sub

-- Values between two pauses.
local STRIDE = 4096

local _M = {}

-- What stands in `container`, and the line where it begins.
local function note(lines, container, key, line)
    lines[container] = lines[container] or {}
    lines[container][key] = line
end

local function key_of(source, first, last)
    return cjson.decode("[" .. sub(source, first, last) .. "]")[1]
end

-- Reads a string: as a key it is the place of what follows. Returns its last byte.
local function on_string(self, at)
    local last, open = json_keys.string_end(self.source, at), self[self.depth]
    if open and open.awaits_key then
        open.awaits_key, open.place = false, key_of(self.source, at, last)
        note(self.lines, open.value, open.place, self.line)
    end
    return last
end

local function on_open(self, value, is_list)
    local outer = self[self.depth]
    if outer then
        value = outer.value[outer.place]
    end
    self.depth = self.depth + 1
    self[self.depth] = { value = value, is_list = is_list, place = 0, awaits_key = not is_list }
end

-- The next element of a list begins with any byte that is no comma and no end.
local function on_value(self)
    local open = self[self.depth]
    if open and open.is_list and not open.is_begun then
        open.is_begun, open.place = true, open.place + 1
        note(self.lines, open.value, open.place, self.line)
    end
end

local function on_comma(self)
    local open = self[self.depth]
    open.is_begun, open.awaits_key = false, not open.is_list
end

--- Adds the lines of a text's values.
-- @tparam table lines table -> key or index -> number
-- @tparam string source JSON without duplicate keys
-- @tparam table value what it decodes to
-- @tparam[opt] function pause called now and then, may yield
function _M.add(lines, source, value, pause)
    if not find(source, "[\r\n]") then
        return
    end
    local self = { source = source, lines = lines, line = 1, depth = 0 }
    local at, count = find(source, '[%[%]{}",\r\n%w%-]'), 0
    while at do
        local char = sub(source, at, at)
        count = count + 1
        if pause and count % STRIDE == 0 then
            pause()
        end
        if char == "\r" and sub(source, at + 1, at + 1) == "\n" then
            at = at + 1
        end
        if char == "\n" or char == "\r" then
            self.line = self.line + 1
        elseif char == "," then
            on_comma(self)
        elseif char == "}" or char == "]" then
            self.depth = self.depth - 1
        else
            on_value(self)
            if char == '"' then
                at = on_string(self, at)
            elseif char == "{" or char == "[" then
                on_open(self, value, char == "[")
            end
        end
        at = find(source, '[%[%]{}",\r\n%w%-]', at + 1)
    end
end

return _M
