--- Secrets in what is logged: the values of parameters and headers by name.
--
-- The names stand in the C module, one list for the access log, the error log and whoever asks
-- here: `apikey`, those of HTTP's own credentials, and what is added; by the control worker those
-- that configurations have (`names_secrets` of a schema). The case of letters does not
-- matter, nor `-` against `_`; in a query percent-encoded names are read as well.
-- @module sluice.redact
-- @usage
-- local redact = require("sluice.redact")
-- redact.add("token")            -- when the worker begins
-- redact.uri("/a?token=x&b=1")   -- "/a?token=REDACTED&b=1"

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

local C = ffi.C
local ffi_string = ffi.string
local find = string.find

local is_nginx = abi.declare("lib/redact")

-- NGX_SLUICE_REDACT_URI, NGX_SLUICE_REDACT_QUERY, NGX_SLUICE_REDACT_GROWTH
local URI = 0
local QUERY = 1
local GROWTH = 4

local _M = {
    --- What stands in the place of a secret.
    REDACTED = "REDACTED",
}

-- Grows with the longest text; nothing here yields.
local room, room_size = nil, 0

local function redact(text, kind)
    if GROWTH * #text > room_size then
        room_size = GROWTH * #text
        room = ffi.new("char[?]", room_size)
    end
    return ffi_string(room, C.sluice_redact(room, text, #text, kind))
end

--- Adds a name; it stays for as long as the worker lives. One that ends with `/` is of paths: what
-- stands behind it is a secret (`kind/`, or `parents/kind/` for /parents/name/kind/secret). One
-- that is longer than 255 bytes, or one more than 1024, makes every name a secret.
-- @tparam string name
-- @phases any within nginx
function _M.add(name)
    C.sluice_redact_add(name, #name)
end

--- Adds a name in all workers, those to come among them, for as long as nginx runs: before what
-- uses the name is live. In the control worker alone, also in a thread; nothing outside of nginx.
-- Beyond 64 KB of names every name is a secret.
-- @tparam string name of 1 to 255 bytes
function _M.publish(name)
    if is_nginx then
        C.sluice_redact_publish(name, #name)
    end
end

--- Whether the value of a header, or of a parameter, is a secret.
-- @tparam string name
-- @treturn boolean
-- @phases any within nginx
function _M.is_secret(name)
    return C.sluice_redact_is_secret(name, #name) ~= 0
end

--- A URI, or a text with one, without the secrets in its query, the credentials before its host,
-- and the key that a path of the admin listener has.
-- @tparam string text
-- @treturn string
-- @phases any within nginx
function _M.uri(text)
    if not find(text, "[?&;#@%%]") and C.sluice_redact_has_segment(text, #text) == 0 then
        return text
    end
    return redact(text, URI)
end

--- A query without its secrets.
-- @tparam string text without the question mark
-- @treturn string
-- @phases any within nginx
function _M.query(text)
    return redact(text, QUERY)
end

return _M
