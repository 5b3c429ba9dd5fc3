--- The oracle of fields.h: what key-auth read queries and bodies with before it was C.
--
-- A text is cut into a head, its fields as they stand, and a tail. So what is left after a field
-- was taken out is, byte for byte, what the client sent: nothing is decoded and encoded again,
-- which would lose long integers, the order of members and the difference between `[]` and `{}`.

local cjson = require("cjson")

local byte = string.byte
local concat = table.concat
local find = string.find
local gsub = string.gsub
local lower = string.lower
local match = string.match
local ngx = ngx
local sub = string.sub

local QUOTE = byte('"')
local COMMA = byte(",")

local _M = {}

local function unescape(text)
    -- A plus is a space in forms. One without an escape is returned as it is.
    return ngx.unescape_uri((gsub(text, "+", " ")))
end

--- Cuts `a=1&b=2`.
-- @tparam string text query string or body of type application/x-www-form-urlencoded
-- @treturn table document
-- @phases rewrite, access, content
function _M.from_form(text)
    local document = { head = "", tail = "", separator = "&" }
    local from, next_equals = 1, 0
    while from <= #text do
        local to = (find(text, "&", from, true) or #text + 1) - 1
        if next_equals < from then
            -- Not for each field: where none has one, each search would go to the end.
            next_equals = find(text, "=", from, true) or #text + 1
        end
        local equals = next_equals <= to and next_equals
        document[#document + 1] = {
            name = unescape(sub(text, from, (equals or to + 1) - 1)),
            -- "?name" without a value is a flag, not an empty key.
            value = not equals or unescape(sub(text, equals + 1, to)),
            text = sub(text, from, to),
        }
        from = to + 2
    end
    return document
end

--- Position of the quote that ends the JSON string which begins at `from`.
local function string_end(text, from)
    local at = from
    repeat
        at = find(text, '["\\]', at + 1)
        local is_end = byte(text, at) == QUOTE
        if not is_end then
            at = at + 1
        end
    until is_end
    return at
end

local function json_field(text)
    local from = find(text, '"', 1, true)
    local to = string_end(text, from)
    local colon = find(text, ":", to, true)
    return {
        name = cjson.decode("[" .. sub(text, from, to) .. "]")[1],
        value = cjson.decode("[" .. sub(text, colon + 1) .. "]")[1],
        text = text,
    }
end

--- Cuts the outermost object of a JSON text.
-- @tparam string text body of type application/json
-- @treturn table|nil document, nil if the text is not a JSON object
-- @phases any
function _M.from_json(text)
    local first = match(text, "^%s*{()")
    if not first or not pcall(cjson.decode, text) then
        return nil
    end

    -- The text is known to be valid from here on, so brackets match and strings end.
    local document = { head = sub(text, 1, first - 1), separator = "," }
    local from, at, depth = first, first, 0
    while depth >= 0 do
        at = find(text, '["{}%[%],]', at)
        local char = byte(text, at)
        if char == QUOTE then
            at = string_end(text, at)
        elseif char == COMMA then
            if depth == 0 then
                document[#document + 1] = json_field(sub(text, from, at - 1))
                from = at + 1
            end
        elseif find(text, "^[{%[]", at) then
            depth = depth + 1
        else
            depth = depth - 1
        end
        at = at + 1
    end
    local last = sub(text, from, at - 2)
    if find(last, '"', 1, true) then
        document[#document + 1] = json_field(last)
        last = ""
    end
    document.tail = last .. sub(text, at - 1)
    return document
end

local function multipart_field(part, text)
    local head_end, body_start = find(part, "\r\n\r\n", 1, true)
    local name
    for line in (sub(part, 1, head_end) .. "\r\n"):gmatch("(.-)\r\n") do
        if find(lower(line), "^content%-disposition:") then
            name = match(line, '[; ][nN][aA][mM][eE]="([^"]*)"')
                or match(line, "[; ][nN][aA][mM][eE]=([^%s;]+)")
        end
    end
    return { name = name, value = body_start and sub(part, body_start + 1) or true, text = text }
end

--- Cuts a form with a boundary between its fields (RFC 7578, RFC 2046 5.1).
-- @tparam string text body of type multipart/form-data
-- @tparam string content_type value of the request's Content-Type
-- @treturn table|nil document, nil if the text is not such a form
-- @phases any
function _M.from_multipart(text, content_type)
    local boundary = match(content_type, '[bB][oO][uU][nN][dD][aA][rR][yY]="([^"]+)"')
        or match(content_type, "[bB][oO][uU][nN][dD][aA][rR][yY]=([^%s;]+)")
    if not boundary then
        return nil
    end

    local delimiter = "\r\n--" .. boundary
    -- The first delimiter may stand at the very beginning, where no line ends before it.
    local padded = "\r\n" .. text
    local from, to = find(padded, delimiter, 1, true)
    if not from then
        return nil
    end
    local document = { head = sub(padded, 1, from - 1), separator = "", skip = 2 }
    while sub(padded, to + 1, to + 2) ~= "--" do
        local next_from, next_to = find(padded, delimiter, to + 1, true)
        if not next_from then
            return nil
        end
        document[#document + 1] =
            multipart_field(sub(padded, to + 3, next_from - 1), sub(padded, from, next_from - 1))
        from, to = next_from, next_to
    end
    document.tail = sub(padded, from)
    return document
end

--- Looks a field up.
-- @tparam table document what one of the functions above made
-- @tparam string name the field's exact name
-- @treturn any value of the first field of that name: a string, or what JSON had there
-- @treturn number how many fields have that name; a JSON array counts as several
-- @phases any
function _M.lookup(document, name)
    local value
    local count = 0
    for _, field in ipairs(document) do
        if field.name == name then
            count = count + 1
            if count == 1 then
                value = field.value
            end
        end
    end
    if type(value) == "table" then
        count = count + 1
    end
    return value, count
end

--- The text without the fields of a name.
-- @tparam table document what one of the functions above made
-- @tparam string name the fields' exact name
-- @treturn string|nil the remaining text, nil if there is no such field
-- @phases any
function _M.without(document, name)
    local rest = {}
    for _, field in ipairs(document) do
        if field.name ~= name then
            rest[#rest + 1] = field.text
        end
    end
    if #rest == #document then
        return nil
    end
    local text = document.head .. concat(rest, document.separator) .. document.tail
    return sub(text, 1 + (document.skip or 0))
end

return _M
