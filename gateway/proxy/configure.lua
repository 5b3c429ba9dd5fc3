--- Gives plugins all of their configurations, as Kong: those that have `configure`, and those whose
-- handshakes need them.
--
-- A plugin gets a list at the start of a worker and after each change of one of its configurations,
-- before a request sees what has changed; nil for none. Changes between two looks are one. Of other
-- plugins nothing is decoded here; of one that says which phases its configurations need
-- (`lua_phases`), nothing before a handshake.
-- @module gateway.proxy.configure

local entities = require("gateway.proxy.entities")
local phases = require("gateway.kit.phases")

-- How often a worker without requests looks.
local LOOK_SECONDS = 0.5

local _M = {}

-- Those that have it, in the order in which they run, and as a set.
local plugins, wanted

local on_failure, on_success

-- name -> whether it has thrown last.
local failing = {}

-- name -> what it was given last: a text that differs where the list does.
local given = {}

-- name -> its global configuration.
local globals = {}

-- Those with `certificate` that are looked at in handshakes: name -> what to look for, and whether
-- that was done since the last change.
local late, looked = {}, {}

local function give(plugin, list)
    local confs = {}
    for i, one in ipairs(list) do
        confs[i] = one.conf
    end
    local handler = plugin.handler
    local configs = #confs > 0 and confs or nil
    local ok, err =
        phases.run_outside("configure", plugin.name, handler.configure, handler, configs)
    if not ok then
        on_failure(plugin.name, "configure", err)
    elseif failing[plugin.name] then
        on_success(plugin.name, "configure")
    end
    failing[plugin.name] = not ok
end

local function global_of(list)
    local found
    for _, one in ipairs(list) do
        found = one.is_global and one.conf or found
    end
    return found
end

--- Looks what is new, and gives it.
local function update()
    looked = {}
    if #plugins == 0 then
        return
    end
    local lists, marks = entities.all(wanted)
    for _, plugin in ipairs(plugins) do
        local name = plugin.name
        if marks[name] ~= given[name] then
            given[name] = marks[name]
            globals[name] = global_of(lists[name])
            if plugin.handler.configure then
                give(plugin, lists[name])
            end
        end
    end
end

local function look(premature)
    if not premature then
        entities.look()
    end
end

--- What to do when something has changed (gateway.proxy.entities); nil: no plugin wants to know.
-- @tparam table registry the plugins, of gateway.plugin.registry
-- @tparam function failed `(plugin, phase, message)`
-- @tparam function mended `(plugin, phase)`: it has thrown before, and now has not
-- @treturn function|nil
-- @phases init_worker
function _M.init_worker(registry, failed, mended)
    plugins, wanted, on_failure, on_success = {}, {}, failed, mended
    for _, plugin in ipairs(registry:list()) do
        local handler = plugin.handler
        local is_late = plugin.has_phases and not handler.configure and handler.certificate
        if is_late then
            late[plugin.name] = { [plugin.name] = true }
        elseif not plugin.native and (handler.configure or handler.certificate) then
            plugins[#plugins + 1], wanted[plugin.name] = plugin, true
        end
    end
    if #plugins > 0 then
        assert(ngx.timer.at(0, look))
        assert(ngx.timer.every(LOOK_SECONDS, look))
    end
    return (#plugins > 0 or next(late)) and update or nil
end

--- The configuration of a plugin that is bound to nothing, of those that this looks at.
-- @tparam string name
-- @treturn table|nil
-- @phases certificate
function _M.global(name)
    if late[name] and not looked[name] then
        globals[name] = global_of(entities.all(late[name])[name])
        looked[name] = true
    end
    return globals[name]
end

return _M
