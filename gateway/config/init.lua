--- A declarative file to a snapshot: flat, checked, defaults filled, ids given.
-- @module gateway.config
-- @usage
-- local snapshot, errors = config.load("sluice.yaml", registry)
-- if not snapshot then
--     io.stderr:write(config.format_errors(errors), "\n")
-- end

local digest = require("openssl.digest")
local collect = require("gateway.config.collect")
local document = require("gateway.config.document")
local link = require("gateway.config.link")

local concat = table.concat
local format = string.format
local ipairs = ipairs
local os = os

-- hexadecimal digits of a snapshot's hash
local HASH_LENGTH = 32

local _M = {}

--- The hash by which a text is known: 32 hexadecimal digits.
-- @tparam string source
-- @treturn string
function _M.hash(source)
    local hex = digest.new("sha256"):final(source):gsub(".", function(c)
        return format("%02x", c:byte())
    end)
    return hex:sub(1, HASH_LENGTH)
end

--- Parses and checks the text of a declarative file.
-- All errors are collected: those of the fields, then those of references and
-- uniqueness. Never throws for any text. Does not yield; about 100 us a route.
-- @tparam string source
-- @tparam[opt] string kind "yaml" or "json"; told by the text when absent
-- @tparam table registry of plugins: `registry:get(name)` gives a plugin or nil
-- @tparam[opt] number at when the text was loaded first, in seconds: the `created_at` and
-- `updated_at` of entities that name none; now when absent
-- @treturn table|nil snapshot: an array of entities for each kind (`services`,
-- `routes`, ...), in the order of the file; `format_version` "3.0"; `hash` of the
-- text, 32 hexadecimal digits; `warnings`, an array of strings
-- @treturn nil|table array of `{ path =, message = }`; path is "" for the whole text
function _M.parse(source, kind, registry, at)
    local decoded, err, where = document.decode(source, kind)
    if not decoded then
        return nil, { { path = where or "", message = err } }
    end
    local state = collect.run(decoded, registry)
    local snapshot = link.run(state, at or os.time())
    if #state.errors > 0 then
        return nil, state.errors
    end
    snapshot.format_version = "3.0"
    snapshot.hash = _M.hash(source)
    snapshot.warnings = state.warnings
    return snapshot
end

--- Reads, parses and checks a declarative file.
-- The format is told by the extension (`.json`, `.yaml`, `.yml`), otherwise by
-- the text. Does not yield, blocks on the file.
-- @tparam string path
-- @tparam table registry of plugins
-- @tparam[opt] number at as for `parse`
-- @treturn table|nil snapshot, as from `parse`
-- @treturn nil|table errors, as from `parse`
function _M.load(path, registry, at)
    local source, err = document.read(path)
    if not source then
        return nil, { { path = "", message = err } }
    end
    local snapshot, errors = _M.parse(source, document.format_of(path), registry, at)
    if errors and errors[1].path == "" then
        errors[1].message = path .. ": " .. errors[1].message
    end
    return snapshot, errors
end

--- Writes errors for people, one a line.
-- @tparam table errors array of `{ path =, message = }`
-- @treturn string `path: message` lines without a newline at the end
function _M.format_errors(errors)
    local lines = {}
    for i, err in ipairs(errors) do
        lines[i] = err.path == "" and err.message or err.path .. ": " .. err.message
    end
    return concat(lines, "\n")
end

return _M
