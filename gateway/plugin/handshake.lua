--- The phase `certificate` of plugins in Lua: in handshakes, with the configurations that are bound
-- to nothing, since nobody knows yet which service or consumer it will be.
--
-- The callback of OpenSSL is C's (module/gateway/tls/ngx_http_sluice_tls.h). It runs this only
-- where a plugin has the phase, and a configuration that is live needs it.
-- @module gateway.plugin.handshake

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")
local phases = require("gateway.kit.phases")

abi.declare("core/image", "gateway/tls")

local _M = {}

-- Those that have the phase, in the order in which they run.
local plugins = {}

local find, refresh, on_failure

--- Lets handshakes run the phase, if a plugin has it.
-- @tparam table registry of gateway.plugin.registry
-- @tparam function configuration `(name)`: the global one of a plugin, or nil
-- @tparam function look without arguments: looks what is published
-- @tparam function failed `(name, phase, message)`
-- @phases init_worker
function _M.init_worker(registry, configuration, look, failed)
    find, refresh, on_failure = configuration, look, failed
    for _, plugin in ipairs(registry:list()) do
        if plugin.handler.certificate then
            plugins[#plugins + 1] = plugin
        end
    end
    ffi.C.sluice_tls_lua(#plugins > 0 and 1 or 0)
end

--- Runs the phase. Nothing can yield: a handshake of stock nginx waits for nothing.
-- @raise what a plugin throws, which ends the handshake: a broken check must not let anybody in
-- @phases certificate
function _M.run()
    refresh()
    for _, plugin in ipairs(plugins) do
        local conf = find(plugin.name)
        if conf then
            local handler, name = plugin.handler, plugin.name
            local ok, err =
                phases.run_outside("certificate", name, handler.certificate, handler, conf)
            if not ok then
                on_failure(plugin.name, "certificate", err)
                error("a plugin has failed in certificate", 0)
            end
        end
    end
end

return _M
