--- The declarative file in the body of a request. In a thread: it may have 100 MB.
-- @module gateway.control.sent_file

local document = require("gateway.config.document")
local multipart = require("gateway.control.admin.multipart")

local assert = assert
local char = string.char
local concat = table.concat
local gsub = string.gsub
local match = string.match
local min = math.min
local sub = string.sub
local tonumber = tonumber
local type = type

-- Media type -> kind of the text; false: to be told by the text itself.
local KINDS = {
    ["application/json"] = "json",
    ["application/yaml"] = "yaml",
    ["application/x-yaml"] = "yaml",
    ["text/yaml"] = "yaml",
    ["text/x-yaml"] = "yaml",
    ["text/plain"] = false,
}

-- Bytes of a form that are decoded at a time.
local PIECE = 1024 * 1024

local _M = {}

local bytes_of = {}
for byte = 0, 255 do
    for _, format in ipairs({ "%02x", "%02X" }) do
        bytes_of[format:format(byte)] = char(byte)
    end
end

local function byte_of(hex)
    return bytes_of[hex] or char(tonumber(hex, 16))
end

local function unescape(text, pause)
    local parts, at = {}, 1
    while at <= #text do
        local last = min(at + PIECE - 1, #text)
        -- An escape stays in one piece.
        local cut = last < #text and match(sub(text, last - 1, last), "%%.?$")
        last = last - (cut and #cut or 0)
        parts[#parts + 1] = gsub(gsub(sub(text, at, last), "+", " "), "%%(%x%x)", byte_of)
        at = last + 1
        pause()
    end
    return concat(parts)
end

-- `curl --data-binary @file` calls any text a form.
local function from_form(text, pause)
    local value = match(text, "^config=([^&]*)") or match(text, "&config=([^&]*)")
    return value and unescape(value, pause) or text
end

local function from_parts(text, header)
    local found
    multipart.each(text, header, function(name, value)
        found = name == "config" and value or nil
        return not found
    end)
    return found
end

-- A JSON object may hold the text in its field `config`, as Kong's clients send it.
local function from_json(text, pause)
    local head = text:sub(1, 64)
    local wrapped = head:find('^%s*{%s*"config"%s*:%s*"')
        and document.decode(text, "json", {
            pause = pause,
        })
    if wrapped and type(wrapped.config) == "string" then
        return wrapped.config, nil
    end
    return text, "json"
end

--- Reads it. Blocks.
-- @tparam table sent `path` of a file that has the body, or the `text` of it; `media_type` in lower
-- case, nil where none was sent; `header`, the whole Content-Type
-- @tparam function pause of gateway.config.document
-- @treturn string|nil the file's text; nil where the media type is not known
-- @treturn nil|string "json" or "yaml"; nil: told by the text
function _M.read(sent, pause)
    local text, media_type = sent.text, sent.media_type or "text/plain"
    if not text then
        text = assert(document.read(sent.path))
    end
    if media_type == "multipart/form-data" then
        return from_parts(text, sent.header)
    elseif media_type == "application/x-www-form-urlencoded" then
        return from_form(text, pause)
    elseif media_type == "application/json" then
        return from_json(text, pause)
    elseif KINDS[media_type] == nil then
        return nil
    end
    return text, KINDS[media_type] or nil
end

return _M
