--- The declarative file in the body of a request. In a thread: it may have 100 MB.
-- @module gateway.config.sent_file

local document = require("gateway.config.document")
local ffi = require("ffi")
local file = require("sluice.file")
local multipart = require("gateway.config.multipart")
local text_hash = require("gateway.config.text_hash")
local unistd = require("posix.unistd")

local char = string.char
local concat = table.concat
local gsub = string.gsub
local match = string.match
local min = math.min
local sub = string.sub

-- Media type -> kind of the text; false: to be told by the text itself.
local KINDS = {
    ["application/json"] = "json",
    ["application/yaml"] = "yaml",
    ["application/x-yaml"] = "yaml",
    ["text/yaml"] = "yaml",
    ["text/x-yaml"] = "yaml",
    ["text/plain"] = false,
}

-- Bytes that tell a wrapped text.
local HEAD = 64
-- Bytes of a form that are decoded at a time.
local PIECE = 1024 * 1024

ffi.cdef([[
void *gateway_sent_map(void *at, size_t size, int protection, int flags, int file, long offset)
    __asm__("mmap");
int gateway_sent_unmap(void *at, size_t size) __asm__("munmap");
]])

local C = ffi.C

-- Of Linux, as in gateway.threads.blocks.
local READ, PRIVATE, POPULATE = 1, 2, 0x8000
local FAILED = ffi.cast("void *", -1)
local MEMORY = ffi.typeof("const uint8_t *")

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
local function is_wrapped(head)
    return head:find('^%s*{%s*"config"%s*:%s*"') ~= nil
end

-- The first bytes.
local function head_of(sent)
    local head = sent.text
    if not head then
        local opened = assert(io.open(sent.path, "rb"))
        head = opened:read(HEAD) or ""
        opened:close()
    end
    return head:sub(1, HEAD)
end

local function from_json(text, pause)
    local wrapped = is_wrapped(text:sub(1, HEAD))
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

--- Calls a function with a file's text where it is, in memory that Lua does not count, if the body
-- is that text as JSON. Blocks.
-- @tparam table sent as for `read`
-- @tparam function fn `(memory, size)`: `const uint8_t *`, and bytes; may throw
-- @return what it returns; nil: the body is another one
function _M.with_memory(sent, fn)
    if sent.media_type ~= "application/json" or is_wrapped(head_of(sent)) then
        return nil
    elseif sent.text then
        return fn(ffi.cast(MEMORY, sent.text), #sent.text)
    end
    local fd, info = file.open(sent.path)
    local size = fd and info.st_size or 0
    local memory = size > 0 and C.gateway_sent_map(nil, size, READ, PRIVATE + POPULATE, fd, 0)
    if fd then
        unistd.close(fd)
    end
    if not memory or memory == FAILED then
        return nil
    end
    local ok, found = pcall(fn, ffi.cast(MEMORY, memory), size)
    C.gateway_sent_unmap(memory, size)
    if not ok then
        error(found, 0)
    end
    return found
end

--- The hash of the file's text, where the body is that text as it is. Blocks.
-- @tparam table sent as for `read`
-- @tparam function pause of gateway.config.text_hash
-- @treturn string|nil of gateway.config.text_hash
function _M.hash(sent, pause)
    if KINDS[sent.media_type or "text/plain"] == nil then
        return nil
    end
    if is_wrapped(head_of(sent)) then
        return nil
    end
    return sent.text and text_hash.of(sent.text) or text_hash.of_file(sent.path, pause)
end

return _M
