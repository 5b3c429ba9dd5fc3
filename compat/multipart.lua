--- lua-multipart's bodies of multipart/form-data: parts read, changed and written again.
--
-- Reading takes time with the length of the body.
-- @module multipart
-- @usage
-- local data = require("multipart")(body, ngx.var.content_type)
-- local name = data:get("name").value

local concat = table.concat
local find = string.find
local insert = table.insert
local ipairs = ipairs
local match = string.match
local pairs = pairs
local rawget = rawget
local remove = table.remove
local setmetatable = setmetatable
local sub = string.sub
local tostring = tostring

-- Of what is written without a boundary.
local RANDOM_BOUNDARY = sub(tostring({}), 10)

local _M = { RANDOM_BOUNDARY = RANDOM_BOUNDARY }
_M.__index = _M

-- Reading ----------------------------------------------------------------------------------------

-- The line that begins at a place, and where the next one begins; nil at the end.
local function next_line(text, at, last)
    if at > last then
        return nil
    end
    local ends = find(text, "\n", at, true)
    ends = ends and ends <= last and ends or last + 1
    local line = sub(text, at, ends - 1)
    return sub(line, -1) == "\r" and sub(line, 1, -2) or line, ends + 1
end

-- The name that Content-Disposition gives a part.
local function name_of(line)
    -- A file's name may have what looks like a parameter.
    local plain = line:gsub('([Ff][Ii][Ll][Ee][Nn][Aa][Mm][Ee]%*?%s*=%s*)"[^"]*"', "%1")
    local _, from = find(plain, "[;%s][Nn][Aa][Mm][Ee]%s*=%s*")
    if not from then
        return nil
    end
    return match(plain, '^"([^"]*)"', from + 1) or match(plain, "^[^;%s]+", from + 1)
end

-- A part without the delimiters around it: its fields, an empty line, its value.
local function read_part(text, from, last)
    local headers, name, at = {}, nil, from
    while true do
        local line, after = next_line(text, at, last)
        if not line then
            return nil
        elseif line == "" then
            at = after
            break
        elseif not find(line, ":", 1, true) then
            -- No field: the value begins, as some senders leave the empty line out.
            break
        end
        if line:lower():find("^content%-disposition") then
            name = name_of(line)
        end
        headers[#headers + 1] = line
        at = after
    end
    return name and { name = name, headers = headers, value = sub(text, at, last) }
end

-- Where the next delimiter begins that begins a line: its place, and that of the line after it; and
-- whether it is the last one.
local function next_delimiter(text, delimiter, at)
    while true do
        local from, to = find(text, delimiter, at, true)
        if not from then
            return nil
        end
        if from == 1 or sub(text, from - 1, from - 1) == "\n" then
            local rest, ends = match(text, "^([^\r\n]*)\r?\n?()", to + 1)
            if match(rest, "^%-?%-?%s*$") then
                return from, ends, sub(rest, 1, 2) == "--"
            end
        end
        at = to + 1
    end
end

-- Where the value before a delimiter ends: without the line end that is the delimiter's.
local function end_before(text, from)
    from = from - 1
    if sub(text, from, from) == "\n" then
        from = from - 1
    end
    return sub(text, from, from) == "\r" and from - 1 or from
end

local function decode(text, boundary)
    local data, indexes = {}, {}
    local delimiter = boundary and "--" .. boundary
    local _, begins, is_last
    if delimiter then
        _, begins, is_last = next_delimiter(text, delimiter, 1)
    end
    while begins and not is_last do
        local from, after
        from, after, is_last = next_delimiter(text, delimiter, begins)
        local part = read_part(text, begins, from and end_before(text, from) or #text)
        if part then
            data[#data + 1] = part
            indexes[part.name] = indexes[part.name] or {}
            insert(indexes[part.name], #data)
        end
        begins = after
    end
    return { data = data, indexes = indexes }
end

local function boundary_of(content_type)
    local found = content_type and match(content_type, ";%s*[Bb][Oo][Uu][Nn][Dd][Aa][Rr][Yy]=(.*)")
    found = found
        and (match(found, '^"([^"]*)"') or match(found, "^'([^']*)'") or match(found, "^[^;%s]+"))
    return found ~= "" and found or nil
end

--- Reads a body.
-- @tparam[opt=""] string body
-- @tparam[opt] string content_type has the boundary; without one there are no parts
-- @treturn table
-- @phases any
function _M.new(body, content_type)
    local boundary = boundary_of(content_type)
    return setmetatable({ _boundary = boundary, _data = decode(body or "", boundary) }, _M)
end

setmetatable(_M, {
    __call = function(_, ...)
        return _M.new(...)
    end,
})

-- Parts ------------------------------------------------------------------------------------------

local function values_of(self, name)
    local values = {}
    for i, index in ipairs(self._data.indexes[name] or {}) do
        values[i] = self._data.data[index].value
    end
    return values
end

--- The first part of a name.
-- @treturn table|nil name, value, headers (lines)
-- @phases any
function _M:get(name)
    local index = self._data.indexes[name]
    return index and self._data.data[index[1]]
end

--- The value of the first part of each name.
-- @phases any
function _M:get_all()
    local values = {}
    for name, index in pairs(self._data.indexes) do
        values[name] = self._data.data[index[1]].value
    end
    return values
end

--- The values of all parts of a name.
-- @phases any
function _M:get_as_array(name)
    return values_of(self, name)
end

--- The values of all parts, an array for each name.
-- @phases any
function _M:get_all_as_arrays()
    local values = {}
    for name in pairs(self._data.indexes) do
        values[name] = values_of(self, name)
    end
    return values
end

--- The values of all parts: an array for a name that comes again, else a text.
-- @phases any
function _M:get_all_with_arrays()
    local values = {}
    for name, index in pairs(self._data.indexes) do
        local all = values_of(self, name)
        values[name] = #index == 1 and all[1] or all
    end
    return values
end

-- Fields by name in small letters, `_` for `-`.
local fields_mt = {
    __index = function(fields, name)
        return rawget(fields, (name:lower():gsub("_", "-")))
    end,
}

local function fields_of(lines)
    local fields = {}
    for _, line in ipairs(lines) do
        local name, value = match(line, "^%s*([^:%s]+)%s*:%s*(.+)")
        if name then
            fields[name:lower()] = value
        end
    end
    return setmetatable(fields, fields_mt)
end

--- All parts of a name with their fields.
-- @treturn {table,...} value, headers
-- @phases any
function _M:get_with_headers_as_array(name)
    local parts = {}
    for i, index in ipairs(self._data.indexes[name] or {}) do
        local part = self._data.data[index]
        parts[i] = { value = part.value, headers = fields_of(part.headers) }
    end
    return parts
end

--- The same of each name.
-- @phases any
function _M:get_all_include_headers_with_arrays()
    local parts = {}
    for name in pairs(self._data.indexes) do
        parts[name] = self:get_with_headers_as_array(name)
    end
    return parts
end

-- Changes ----------------------------------------------------------------------------------------

-- Texts go into quoted strings of fields, which they must not end (HTML, "multipart/form-data").
local function quoted(text)
    return (tostring(text):gsub('["\r\n]', { ['"'] = "%22", ["\r"] = "%0D", ["\n"] = "%0A" }))
end

--- Sets the value of the first part of a name, or adds one at the end.
-- @tparam string name
-- @tparam string value
-- @tparam[opt] string filename
-- @tparam[opt] string content_type
-- @phases any
function _M:set_simple(name, value, filename, content_type)
    local line = 'Content-Disposition: form-data; name="' .. quoted(name) .. '"'
    if filename then
        line = line .. '; filename="' .. quoted(filename) .. '"'
    end
    local headers = { line }
    if content_type then
        headers[2] = "content-type: " .. content_type:gsub("[\r\n]", " ")
    end
    local index = self._data.indexes[name]
    if not index then
        index = { #self._data.data + 1 }
        self._data.indexes[name] = index
    end
    self._data.data[index[1]] = { name = name, value = value, headers = headers }
end

--- Removes all parts of a name.
-- @phases any
function _M:delete(name)
    local gone = self._data.indexes[name]
    if not gone then
        return
    end
    for i = #gone, 1, -1 do
        remove(self._data.data, gone[i])
    end
    local indexes = {}
    for i, part in ipairs(self._data.data) do
        indexes[part.name] = indexes[part.name] or {}
        insert(indexes[part.name], i)
    end
    self._data.indexes = indexes
end

--- Writes the body.
-- @treturn string "" without parts
-- @phases any
function _M:tostring()
    local boundary = self._boundary or RANDOM_BOUNDARY
    local out = {}
    for _, part in ipairs(self._data.data) do
        if part.value then
            insert(out, "--" .. boundary)
            for _, line in ipairs(part.headers) do
                insert(out, line)
            end
            insert(out, "")
            insert(out, part.value)
        end
    end
    if #out == 0 then
        return ""
    end
    insert(out, "--" .. boundary .. "--\r\n")
    return concat(out, "\r\n")
end

return _M
