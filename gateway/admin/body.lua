--- The body of a request: a text, and what it says as JSON or as a form.
--
-- A refusal is `{ status =, message = }`. Nothing here throws for any body.
-- @module gateway.admin.body

local garbage_collector = require("sluice.garbage_collector")
local json_text = require("gateway.config.json_text")
local multipart = require("gateway.config.multipart")
local text_rules = require("gateway.schema.text")
local variables = require("gateway.pdk.variables")

local byte = string.byte
local find = string.find
local sort = table.sort

-- Fields of a form, and how deep one may name what stands in others.
local MAX_FIELDS = 1000
local MAX_NESTING = 20
-- Place of an item in a list of a form.
local MAX_INDEX = 1000

local BACKSLASH = byte("\\")

local _M = {}

--- Bytes of an entity as it is sent: to check one takes no turns with other requests, and some
-- 40 ms a megabyte at worst.
_M.MAX_BYTES = 2 * 1024 * 1024

local function refuse(status, message, ...)
    return nil, { status = status, message = message:format(...) }
end

--- The media type of the body, without its parameters.
-- @treturn string|nil in lower case
-- @treturn string|nil the whole header
-- @phases content
function _M.media_type()
    local header = variables.http_content_type:get()
    return header and header:match("^%s*([^;%s]*)"):lower(), header
end

--- The body as it is. Yields.
-- @tparam[opt] number max_bytes of a body that is wanted
-- @treturn string|nil nil where it has more
-- @phases content
function _M.text(max_bytes)
    local declared = max_bytes and tonumber(variables.content_length:get())
    if declared and declared > max_bytes then
        -- Unread: nginx need not keep what is refused.
        return nil
    end
    ngx.req.read_body()
    local text = ngx.req.get_body_data()
    local path = not text and ngx.req.get_body_file()
    if path then
        local file = assert(io.open(path, "rb"))
        local is_wanted = not max_bytes or file:seek("end") <= max_bytes
        file:seek("set")
        text = is_wanted and file:read("*a") or nil
        file:close()
        return text
    end
    text = text or ""
    return (not max_bytes or #text <= max_bytes) and text or nil
end

--- The body, wherever nginx has it, for a thread. Yields.
-- @treturn table of gateway.config.sent_file, with `bytes`
-- @phases content
function _M.source()
    ngx.req.read_body()
    local media_type, header = _M.media_type()
    local source = { media_type = media_type, header = header }
    source.text = ngx.req.get_body_data()
    source.path = not source.text and ngx.req.get_body_file() or nil
    if source.path then
        local file = assert(io.open(source.path, "rb"))
        source.bytes = file:seek("end")
        file:close()
    else
        source.text = source.text or ""
        source.bytes = #source.text
    end
    return source
end

-- JSON -------------------------------------------------------------------------------------------

local function unparsable(reason)
    return refuse(400, "Cannot parse JSON body (%s)", reason)
end

-- Whether a text of JSON has a NUL byte as \\u0000: behind an even number of other backslashes.
local function has_nul(text)
    local at = 0
    while true do
        at = find(text, "\\u0000", at + 1, true)
        if not at then
            return false
        end
        local first = at
        while byte(text, first - 1) == BACKSLASH do
            first = first - 1
        end
        if (at - first) % 2 == 0 then
            return true
        end
    end
end

--- Reads JSON, a large one in turns with other requests. Yields.
-- @tparam string text
-- @treturn table|nil an object or a list
-- @treturn nil|table refusal
-- @phases content
function _M.json(text)
    local is_utf8, why = text_rules.utf8(text)
    if not is_utf8 then
        return unparsable(why)
    elseif find(text, "\0", 1, true) or has_nul(text) then
        return unparsable("a NUL byte")
    end
    local value, err = json_text.decode(text, garbage_collector.turns())
    if err and err.key then
        return unparsable(("duplicate key '%s'"):format(text_rules.shorten(err.key, 100)))
    elseif err then
        local where = err.offset and (" at character %d"):format(err.offset) or ""
        return unparsable(err.message .. where)
    elseif type(value) ~= "table" then
        return unparsable("expected an object")
    end
    return value
end

-- Forms ------------------------------------------------------------------------------------------

-- A form's fields: the values of each name, in their order.
local function new_fields()
    return { names = {}, values = {}, count = 0 }
end

local function add(fields, name, value)
    if not fields.values[name] then
        fields.names[#fields.names + 1] = name
        fields.values[name] = {}
    end
    local values = fields.values[name]
    values[#values + 1] = value
    fields.count = fields.count + 1
    return fields.count <= MAX_FIELDS
end

local function too_many()
    return refuse(400, "a form has at most %d fields", MAX_FIELDS)
end

local function urlencoded(text)
    local args, err = ngx.decode_args(text, MAX_FIELDS)
    if err then
        return too_many()
    end
    local fields = new_fields()
    for name, value in pairs(args) do
        for _, item in ipairs(type(value) == "table" and value or { value }) do
            -- A name without "=" has no value.
            add(fields, name, item == true and "" or item)
        end
    end
    -- What comes first may not depend on a hash.
    sort(fields.names)
    return fields
end

local function of_parts(text, header)
    local fields = new_fields()
    local ok, why = multipart.each(text, header, function(name, value)
        return add(fields, name, value)
    end)
    if why then
        return refuse(400, "%s", why)
    end
    return ok and fields or too_many()
end

--- Reads a form.
-- @tparam string text
-- @tparam string media_type
-- @tparam string header the whole Content-Type
-- @treturn table|nil `names`, `values`: name -> array of texts; nil where it is no form, or refused
-- @treturn nil|table refusal
-- @phases any within nginx
function _M.form(text, media_type, header)
    if media_type == "application/x-www-form-urlencoded" then
        return urlencoded(text)
    elseif media_type == "multipart/form-data" then
        return of_parts(text, header)
    end
    return nil
end

-- The parts of a field's name: `config.headers[1]` is "config", "headers", 1; `paths[]` is "paths"
-- and 0, for the next place.
local function parts_of(name)
    local parts, rest = {}, name
    while rest ~= "" and #parts < MAX_NESTING do
        local part, after = rest:match("^%.?([^.%[%]]+)(.*)$")
        if not part then
            local index
            index, after = rest:match("^%[(%d*)%](.*)$")
            part = index and (tonumber(index) or 0)
        end
        if not part or (type(part) == "number" and part > MAX_INDEX) then
            return nil
        end
        parts[#parts + 1], rest = part, after
    end
    return rest == "" and type(parts[1]) == "string" and parts or nil
end

-- Puts values where their name says. False: something else stands there.
local function put(into, parts, values)
    local place = into
    for i = 1, #parts - 1 do
        local part = parts[i] == 0 and #place + 1 or parts[i]
        local there = place[part]
        if there ~= nil and type(there) ~= "table" then
            return false
        end
        place[part] = there or {}
        place = place[part]
    end
    local last = parts[#parts]
    if last == 0 then
        for _, value in ipairs(values) do
            place[#place + 1] = value
        end
        return true
    elseif place[last] ~= nil then
        return false
    end
    place[last] = #values > 1 and values or values[1]
    return true
end

-- An entity of a form's texts.
local function nest(fields)
    local out = {}
    for _, name in ipairs(fields.names) do
        local parts = parts_of(name)
        local shown = text_rules.shorten(name, 100)
        if not parts then
            return refuse(400, "'%s' is not the name of a field", shown)
        end
        local values = fields.values[name]
        for _, value in ipairs(values) do
            local is_utf8, why = text_rules.utf8(value)
            if not is_utf8 or find(value, "\0", 1, true) then
                return refuse(400, "field '%s': %s", shown, why or "a NUL byte")
            end
        end
        if not put(out, parts, values) then
            return refuse(400, "field '%s' conflicts with another field", shown)
        end
    end
    return out
end

-- What a client may send --------------------------------------------------------------------------

-- No field is called so: curl's -d calls any text a form.
local function looks_like_json(text)
    return find(text, "^%s*%[?%s*{") ~= nil
end

local function unsupported(text)
    local message = "send Content-Type: application/json"
    if not looks_like_json(text) then
        message = message .. ", application/x-www-form-urlencoded or multipart/form-data"
    end
    return { status = 415, message = message }
end

--- The body as an entity, or as a list of them. Yields.
-- @tparam number max_bytes
-- @treturn table|nil `value`, empty where there is no body; `is_form`: its leaves are texts; `size`
-- in bytes
-- @treturn nil|table refusal
-- @phases content
function _M.read(max_bytes)
    local text = _M.text(max_bytes)
    if not text then
        return refuse(413, "the body is larger than %d bytes", max_bytes)
    elseif text == "" then
        return { value = {}, size = 0 }
    end
    local media_type, header = _M.media_type()
    if media_type and (media_type == "application/json" or media_type:find("%+json$")) then
        local value, refusal = _M.json(text)
        return value and { value = value, size = #text }, refusal
    end
    local fields, refusal
    if media_type == "multipart/form-data" or not looks_like_json(text) then
        fields, refusal = _M.form(text, media_type, header)
    end
    if not fields then
        return nil, refusal or unsupported(text)
    end
    local value
    value, refusal = nest(fields)
    return value and { value = value, is_form = true, size = #text }, refusal
end

return _M
