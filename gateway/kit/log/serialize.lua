--- `kong.log.serialize` and `kong.log.set_serialize_value`: the log entry of a request as a table.
--
-- The entry is the one that log plugins in C write (gateway.pdk.log_entry), without secrets, and
-- with what plugins have set here. What is set goes two ways: as JSON, at once, to C, which changes
-- the entries of log plugins (ngx_http_sluice_log_edits.c) without Lua in the log phase; and, as it
-- is, into the table that `serialize` returns: in Kong a plugin gets the very values there.
-- @module gateway.kit.log.serialize

local abi = require("sluice.ffi.abi")
local bit = require("bit")
local cjson = require("cjson.safe")
local ffi = require("ffi")
local pdk = require("gateway.pdk")
local phases = require("gateway.kit.phases")

-- As Kong's: 16 digits, and no error for arrays with holes.
local encoder = require("sluice.cjson_arrays").new(true)
encoder.encode_number_precision(16)
encoder.encode_sparse_array(nil, nil, 2 ^ 15)

-- Without nginx (the command line) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "core/spool", "core/text", "gateway/log")

local C = ffi.C
local ngx = ngx

local OK, TOO_MANY = 0, -5

local _M = {}

local LOG = phases.allow("log.serialize", phases.set("log"))
local SET = phases.allow(
    "log.set_serialize_value",
    bit.bor(LOG, phases.set("rewrite", "access", "response", "header_filter", "body_filter"))
)

-- As in module/core/text/json_edit.h.
local MODES = { set = 0, add = 1, replace = 2 }

local DOT = ("."):byte()

local INVALID = "value must be nil, a number, string, boolean or a non-self-referencial table "
    .. "containing numbers, string and booleans"

-- Whether JSON can have it. A table that is met twice counts as one that refers to itself, as in
-- Kong.
local function is_valid(value, seen)
    local kind = type(value)
    if kind == "nil" or kind == "number" or kind == "string" or kind == "boolean" then
        return true
    elseif kind ~= "table" then
        return value == cjson.null
    elseif seen[value] then
        return false
    end
    seen[value] = true
    for key, inner in pairs(value) do
        local is_key = type(key) == "string" or type(key) == "number" or type(key) == "boolean"
        if not is_key or not is_valid(inner, seen) then
            return false
        end
    end
    return true
end

-- The parts of a key between its dots; one at its beginning is a part of it.
local function parts_of(key)
    local parts, from = {}, 1
    for i = 2, #key do
        if key:byte(i) == DOT then
            parts[#parts + 1] = key:sub(from, i - 1)
            from = i + 1
        end
    end
    parts[#parts + 1] = key:sub(from)
    return parts
end

-- The table that is to hold the last part; nil: there is none, and none is to be made.
local function find(root, parts, item)
    local node = root
    for i = 1, #parts - 1 do
        local part = parts[i]
        if node[part] == nil then
            if item.mode == "replace" then
                return nil
            end
            node[part] = {}
        elseif type(node[part]) ~= "table" then
            local text = "The key '%s' could not be used as a serialize value. Subkey '%s' is not "
                .. "a table. It's %s"
            error(text:format(item.key, part, tostring(node[part])), 0)
        end
        node = node[part]
    end
    return node
end

--- Puts what was set into an entry, in the order in which it was.
-- @tparam table root the entry, which is changed
-- @tparam {table,...} items `{ key = , value = , mode = }`
-- @treturn table the entry
-- @raise a value that JSON cannot have, or a key below something that is no table
-- @phases any
function _M.apply(root, items)
    for _, item in ipairs(items) do
        if not is_valid(item.value, {}) then
            error(INVALID, 0)
        end
        local parts = parts_of(item.key)
        local node, last = find(root, parts, item), parts[#parts]
        local is_there = node and node[last] ~= nil
        local is_wanted = item.mode == "set" or is_there == (item.mode == "replace")
        if node and is_wanted then
            node[last] = item.value
        end
    end
    return root
end

-- Of the call in hand.
local edit = get_request and ffi.new("sluice_json_edit_t")

-- Has the entries of log plugins changed.
local function add_edit(key, value, mode)
    local text, err
    if value ~= nil then
        err = INVALID
        if is_valid(value, {}) then
            text, err = encoder.encode(value)
        end
    end
    if err then
        ngx.log(ngx.ERR, "log entries are without the value of '", key, "': ", err)
        return
    end
    edit.key, edit.key_length, edit.mode = key, #key, MODES[mode]
    edit.value, edit.value_length = text, text and #text or 0
    local rc = C.sluice_log_edit(get_request(), edit)
    if rc == TOO_MANY then
        error("no more than 1000 values, of 4 MiB, of a request's log entry can be set", 3)
    elseif rc ~= OK then
        error("no memory", 0)
    end
end

--- Sets a value of the request's log entry, of those that log plugins write and of the one that
-- `serialize` returns.
-- @tparam string key with dots between the names of tables in each other
-- @tparam any value that JSON can have; nil removes
-- @tparam[opt] table options `mode`: "set" (the default), "add" where there is none, "replace"
-- where there is one
-- @raise for a key that is no string, another mode, or more than 1,000 values, or of 4 MiB
-- @phases rewrite, access, response, header_filter, body_filter, log
function _M.set_serialize_value(key, value, options)
    phases.check(SET)
    if type(key) ~= "string" then
        error("key must be a string", 2)
    end
    local mode = options and options.mode or "set"
    if not MODES[mode] then
        error("mode must be 'set', 'add' or 'replace'", 2)
    end
    local ctx = ngx.ctx
    local items = ctx.serialize_values
    if not items then
        items = {}
        ctx.serialize_values = items
    end
    items[#items + 1] = { key = key, value = value, mode = mode }
    add_edit(key, value, mode)
end

--- The request's log entry, in Kong's layout, and without the values of secret headers. Does not
-- yield; costs some 20 us.
-- @treturn table
-- @raise for a value that `set_serialize_value` was given and JSON cannot have
-- @phases log
function _M.serialize()
    phases.check(LOG)
    local root = assert(cjson.decode(pdk.log_entry(true)))
    local items = ngx.ctx.serialize_values
    return items and _M.apply(root, items) or root
end

return _M
