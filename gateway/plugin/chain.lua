--- Compiles plugin entities into chains, and runs them.
--
-- All choice of configuration by scope happens when the configuration loads. A
-- chain is, for each phase, an array of steps in order of priority; a step is
-- the plugin's function with the configuration for this route. What is left
-- for the request is the consumer, known only after authentication: a step
-- whose plugin has configurations of consumers carries a table of them.
--
-- The most specific scope wins, as in Kong: consumer+route+service,
-- consumer+route, consumer+service, route+service, consumer, route, service,
-- global. At most one configuration of a plugin runs for a request.
-- @module gateway.plugin.chain

local registry = require("gateway.plugin.registry")
local unroll = require("sluice.unroll")

local _M = {}

local function ref(entity)
    return entity and entity.id or ""
end

local function scope_key(route_id, service_id)
    return route_id .. "|" .. service_id
end

--- Sorts plugin entities by name and scope: what `compile` reads.
-- @tparam {table,...} entities plugin entities of a snapshot
-- @treturn table name -> {plain = {scope key -> conf}, consumers = {scope key ->
--   {consumer id -> conf}}}
function _M.index(entities)
    local by_name = {}
    for _, entity in ipairs(entities) do
        if entity.enabled ~= false then
            local slot = by_name[entity.name]
            if not slot then
                slot = { plain = {}, consumers = {}, all = {} }
                by_name[entity.name] = slot
            end
            local conf = entity.config
            conf.__id = entity.id
            slot.all[#slot.all + 1] = conf
            local key = scope_key(ref(entity.route), ref(entity.service))
            if entity.consumer then
                slot.consumers[key] = slot.consumers[key] or {}
                slot.consumers[key][entity.consumer.id] = conf
            else
                slot.plain[key] = conf
            end
        end
    end
    return by_name
end

--- Configurations by consumer for one route: those of each scope that has some, the most specific
-- first, or nil. Thousands of routes share these tables; merged ones would be as many as routes
-- times consumers.
local function consumer_confs(slot, route_id, service_id, outranked)
    local found = {}
    for _, key in ipairs({
        scope_key(route_id, service_id),
        scope_key(route_id, ""),
        scope_key("", service_id),
            -- A configuration of route and service goes before a consumer's alone.
        not outranked and scope_key("", "") or nil,
    }) do
        found[#found + 1] = slot.consumers[key]
    end
    return found[1] and found
end

local function confs_for(slot, route_id, service_id)
    local both = slot.plain[scope_key(route_id, service_id)]
    local conf = both
        or slot.plain[scope_key(route_id, "")]
        or slot.plain[scope_key("", service_id)]
        or slot.plain[scope_key("", "")]
    local outranked = both ~= nil and route_id ~= "" and service_id ~= ""
    return conf, consumer_confs(slot, route_id, service_id, outranked)
end

--- Compiles the chains of one route.
-- @tparam table plugins the registry
-- @tparam table index of `index`
-- @tparam table|nil route route entity; nil for a request that no route matches
-- @tparam table|nil service service entity
-- @treturn table phase name -> array of steps; a phase without steps is absent
function _M.compile(plugins, index, route, service)
    local chain = {}
    for _, plugin in ipairs(plugins:list()) do
        local slot = index[plugin.name]
        if slot then
            local conf, by_consumer = confs_for(slot, ref(route), ref(service))
            if conf or by_consumer then
                for _, phase in ipairs(registry.PHASES) do
                    if plugin[phase] then
                        chain[phase] = chain[phase] or {}
                        table.insert(chain[phase], {
                            plugin = plugin,
                            run = plugin[phase],
                            conf = conf,
                            by_consumer = by_consumer,
                        })
                    end
                end
            end
        end
    end
    return chain
end

local function conf_of(step, ctx)
    local by_consumer = step.by_consumer
    if by_consumer and ctx.consumer then
        local id = ctx.consumer.id
        for i = 1, #by_consumer do
            local conf = by_consumer[i][id]
            if conf then
                return conf
            end
        end
    end
    return step.conf
end

local RUNNER = [[
    local conf_of{{, step$i}} = ...
    return function(ctx)
        local conf
        {{conf = conf_of(step$i, ctx)
        if conf then
            step$i.run(step$i.plugin, conf)
        end
        }}
    end
]]

--- Makes the function that runs the steps of rewrite or access, one after the
-- other. The function takes the request's context; it may
-- yield where a plugin does; an error thrown by a plugin goes on to nginx, which
-- answers 500: a broken check must not let a request pass.
-- @tparam {table,...}|nil steps
-- @treturn function|nil `(ctx)`, nil without steps
function _M.runner(steps)
    return steps and unroll.compile(RUNNER, #steps)(conf_of, unpack(steps))
end

--- Runs the steps of a phase after the response has begun. There a thrown error
-- cannot become a response any more: it is logged and the next plugin runs.
-- @tparam {table,...} steps
-- @tparam table ctx the request's context
-- @tparam string phase its name, for the log
-- @phases header_filter, body_filter, log
function _M.run_late(steps, ctx, phase)
    for i = 1, #steps do
        local step = steps[i]
        local conf = conf_of(step, ctx)
        if conf then
            local ok, err = pcall(step.run, step.plugin, conf)
            if not ok then
                ngx.log(ngx.ERR, "plugin '", step.plugin.name, "' failed in ", phase, ": ", err)
            end
        end
    end
end

return _M
