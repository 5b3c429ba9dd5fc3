--- The C core's fields (fields.h) with the interface of the Lua that was there before,
-- so that the same cases ask both.

local core = require("test.unit.support.core")

local ffi, lib = core.ffi, core.lib

local text_t = ffi.typeof("sluice_core_text_t")
local name_t = ffi.typeof("sluice_fields_name_t[?]")

local _M = {}

local function text_of(value)
    return text_t(value, #value)
end

local function open(kind, text, content_type)
    local document = {
        fields = ffi.new("sluice_fields_t"),
        text = text,
        type = text_of(content_type),
        anchors = { text, content_type },
    }
    local rc = lib.sluice_fields_open(document.fields, kind, document.type, text_of(text))
    return rc == 0 and document or nil
end

function _M.from_form(text)
    return open(lib.SLUICE_FIELDS_FORM, text, "")
end

--- One that is divided by ";" as well.
function _M.from_loose_form(text)
    return open(lib.SLUICE_FIELDS_LOOSE, text, "")
end

function _M.from_json(text)
    return open(lib.SLUICE_FIELDS_JSON, text, "")
end

function _M.from_multipart(text, content_type)
    return open(lib.SLUICE_FIELDS_MULTIPART, text, content_type)
end

--- @treturn string|boolean|nil the first one's text; true for another value, nil for none
-- @treturn number how many there are
function _M.lookup(document, name)
    local found = name_t(1)
    found[0].name = text_of(name)
    lib.sluice_fields_find(document.fields, found, 1)
    local count, value = found[0].count, found[0].value
    if count == 0 then
        return nil, 0
    elseif found[0].is_text == 0 then
        return true, count
    end
    local buffer = ffi.new("char[?]", value.length + 1)
    local length = lib.sluice_fields_decode(document.fields, value, buffer)
    return ffi.string(buffer, length), count
end

--- @tparam string ... names of what is taken out
function _M.without(document, ...)
    local rest, names, count = text_t(), { ... }, select("#", ...)
    local found = name_t(count)
    for i, name in ipairs(names) do
        found[i - 1].name = text_of(name)
    end
    local buffer = ffi.new("char[?]", #document.text + 1)
    local rc = lib.sluice_fields_without(document.fields, found, count, buffer, rest)
    return rc == 0 and ffi.string(rest.data, rest.length) or nil
end

return _M
