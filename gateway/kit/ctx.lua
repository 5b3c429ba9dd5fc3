--- `kong.ctx`: tables that live as long as their request.
-- @module gateway.kit.ctx

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/request")

local C = ffi.C
local ngx = ngx

-- Keys in ngx.ctx that nobody else has: of what all share, and, by its number, of each plugin.
local KEYS = { shared = {}, core = {} }
local plugin_keys = {}

local function key_of_plugin(request)
    local running = C.sluice_ctx_running(request)
    if running == nil or running.phase == 0 then
        return nil
    end
    local key = plugin_keys[running.plugin]
    if not key then
        key = {}
        plugin_keys[running.plugin] = key
    end
    return key
end

-- What plugins in C have for those in Lua, each told once.
local pair = get_request and ffi.new("sluice_shared_t")

local function take_shared(request, shared)
    while C.sluice_ctx_shared(request, pair) == 0 do
        local value = pair.value
        local name = ffi.string(pair.name.data, pair.name.length)
        shared[name] = value.data ~= nil and ffi.string(value.data, value.length) or nil
    end
end

local function find(_, name)
    local request = get_request and get_request()
    local key = request and (name == "plugin" and key_of_plugin(request) or KEYS[name])
    if not key then
        return nil
    end
    local ctx = ngx.ctx
    local found = ctx[key]
    if not found then
        found = {}
        ctx[key] = found
    end
    if name == "shared" then
        take_shared(request, found)
    end
    return found
end

--- `shared`: of all plugins of the request; `plugin`: of the plugin that runs, in all its phases.
-- Nil outside of requests, `plugin` also where none runs.
-- @table kong.ctx
-- @phases rewrite, access, response, header_filter, body_filter, log
return setmetatable({}, { __index = find })
