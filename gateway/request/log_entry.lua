--- What is written about a request once it is answered, as JSON in Kong's layout.
--
-- The names are those that readers of such logs know (`latencies.kong` is the gateway's own time).
-- C writes the facts, without secrets (ngx_http_sluice_log_entry.c). What is the same
-- for many requests (route, service, consumer) is encoded once, here.
-- @module gateway.request.log_entry

local abi = require("sluice.abi")
local cjson = require("cjson.safe")
local ffi = require("ffi")
local text = require("gateway.schema.text")
-- Declares what an entry is, a text.
require("sluice.core")

-- Without nginx (the command line) nothing is written.
local get_request = ngx and require("resty.core.base").get_request

abi.declare([[
int sluice_log_entry(void *r, const char *more, size_t length, sluice_core_text_t *entry);
]])

local C = ffi.C

local NO_MEMORY, ASCII = -1, 0

local _M = {}

-- Entity -> its JSON; route -> its service, and the JSON of both as members.
local encoded = setmetatable({}, { __mode = "k" })
local matched = setmetatable({}, { __mode = "k" })

local found = ffi.new("sluice_core_text_t")

--- The entity's JSON, without what is unset. Entities do not change.
local function encode_entity(entity)
    local json = encoded[entity]
    if not json then
        local shown = {}
        for name, value in pairs(entity) do
            local is_empty = type(value) == "table" and next(value) == nil
            if not is_empty and value ~= cjson.null then
                shown[name] = value
            end
        end
        json = cjson.encode(shown)
        encoded[entity] = json
    end
    return json
end

local function member(name, entity)
    return entity and (',"%s":%s'):format(name, encode_entity(entity)) or ""
end

--- Route and service, as members of an entry.
local function encode_matched(route, service)
    local known = matched[route]
    if not known or known.service ~= service then
        local json = member("route", route) .. member("service", service)
        known = { service = service, json = json }
        matched[route] = known
    end
    return known.json
end

--- Who asked, as members of an entry.
local function encode_identity(consumer, credential)
    local json = member("consumer", consumer)
    if credential then
        json = json
            .. ',"authenticated_entity":'
            .. cjson.encode({ id = credential.id, consumer_id = consumer and consumer.id })
    end
    return json
end

--- The request's entry. Does not yield.
-- @tparam table entities `route`, `service`, `consumer`, `credential`, as far as there are some
-- @treturn string JSON
-- @phases log
function _M.encode(entities)
    local route, consumer, credential = entities.route, entities.consumer, entities.credential
    local more = route and encode_matched(route, entities.service) or ""
    if consumer or credential then
        more = more .. encode_identity(consumer, credential)
    end
    local rc = C.sluice_log_entry(get_request(), more, #more, found)
    if rc == NO_MEMORY then
        error("no memory", 0)
    end
    local json = ffi.string(found.data, found.length)
    if rc ~= ASCII and not text.utf8(json) then
        -- JSON is UTF-8; what a client sends need not be.
        return (json:gsub("[\128-\255]", "?"))
    end
    return json
end

return _M
