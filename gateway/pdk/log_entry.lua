--- What is written about a request once it is answered, as JSON in Kong's layout.
--
-- The names are those that readers of such logs know (`latencies.kong` is the gateway's own time).
-- C writes it, without secrets (ngx_http_sluice_log_entry.c), and makes the changes of plugins in
-- Lua; only who asks may be known to one of these alone.
-- @module gateway.pdk.log_entry

local abi = require("sluice.ffi.abi")
local cjson = require("cjson.safe")
local ffi = require("ffi")

-- Without nginx (the command line) nothing is written.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "core/spool", "core/text", "gateway/log")

local C = ffi.C

local OK = 0

local _M = {}

local found = ffi.new("sluice_core_text_t")

--- The entity's JSON, without what is unset.
local function encode_entity(entity)
    local shown = {}
    for name, value in pairs(entity) do
        local is_empty = type(value) == "table" and next(value) == nil
        if not is_empty and value ~= cjson.null then
            shown[name] = value
        end
    end
    return cjson.encode(shown)
end

--- Who asked, as members of an entry.
local function encode_identity(consumer, credential)
    local json = consumer and ',"consumer":' .. encode_entity(consumer) or ""
    if credential then
        json = json
            .. ',"authenticated_entity":'
            .. cjson.encode({ id = credential.id, consumer_id = consumer and consumer.id })
    end
    return json
end

--- The request's entry. Does not yield.
-- @tparam[opt] table consumer that a plugin in Lua has named; else C knows who asks
-- @tparam[opt] table credential the same
-- @tparam[opt] boolean is_plain without what plugins in Lua have changed of it
-- @treturn string JSON
-- @phases log
function _M.encode(consumer, credential, is_plain)
    local who = encode_identity(consumer, credential)
    if C.sluice_log_entry(get_request(), who, #who, is_plain and 0 or 1, found) ~= OK then
        error("no memory", 0)
    end
    return ffi.string(found.data, found.length)
end

return _M
