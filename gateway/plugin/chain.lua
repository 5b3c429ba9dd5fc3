--- Compiles plugin bindings into chains, and runs them.
--
-- All choice of configuration by scope happens when a chain is compiled. A chain is, for each
-- phase, an array of steps in order of priority; a step is the plugin's function with the
-- configuration for this route. What is left for the request is the consumer, known only after
-- authentication: a step whose plugin has configurations of consumers looks for theirs.
--
-- A binding says that a configuration of a plugin is in force somewhere: `{name, conf, err, route,
-- service, consumer_only}`. `route` and `service` are whatever names those two, nil where the
-- binding is not bound to one; `err` in place of `conf` where the plugin cannot do with it;
-- `consumer_only` where there is neither, and some consumer has a configuration of the plugin.
--
-- The most specific scope wins, as in Kong: consumer+route+service,
-- consumer+route, consumer+service, route+service, consumer, route, service,
-- global. At most one configuration of a plugin runs for a request.
-- @module gateway.plugin.chain

local registry = require("gateway.plugin.registry")
local unroll = require("sluice.unroll")

local _M = {}

local function scope_key(route, service)
    return (route or "") .. "|" .. (service or "")
end

--- Sorts bindings, save those of consumers, by name and scope: what `compile` reads.
-- @tparam {{table,...},...} lists of bindings
-- @treturn table name -> {plain = {scope key -> binding}, by_consumer = consumers have some}
function _M.index(lists)
    local by_name = {}
    for _, bindings in ipairs(lists) do
        for _, binding in ipairs(bindings) do
            local named = by_name[binding.name]
            if not named then
                named = { plain = {}, by_consumer = false }
                by_name[binding.name] = named
            end
            if binding.consumer_only then
                named.by_consumer = true
            else
                named.plain[scope_key(binding.route, binding.service)] = binding
            end
        end
    end
    return by_name
end

--- The binding that wins where no consumer has one.
-- @treturn table|nil
-- @treturn boolean whether it also wins over a consumer's that is bound to nothing else
local function winner(plain, route, service)
    local both = route and service and plain[scope_key(route, service)] or nil
    local binding = both
        or route and plain[scope_key(route)]
        or service and plain[scope_key(nil, service)]
        or plain[scope_key()]
    return binding, both ~= nil
end

local function add_steps(chain, plugin, conf, by_consumer)
    for _, phase in ipairs(registry.PHASES) do
        if plugin[phase] then
            chain[phase] = chain[phase] or {}
            table.insert(chain[phase], {
                plugin = plugin,
                name = plugin.name,
                run = plugin[phase],
                conf = conf,
                by_consumer = by_consumer,
            })
        end
    end
end

--- Compiles the chain of one route.
-- @tparam table plugins the registry
-- @tparam table index of `index`
-- @tparam any route as bindings name it; nil for a request that no route matches
-- @tparam any service
-- @treturn table phase name -> array of steps; a phase without steps is absent. `by_consumer`:
--   whether any step has to look; `outranked`: name -> true where a consumer's configuration that
--   is bound to nothing else loses; `failure`: what is wrong with a configuration, else nil
function _M.compile(plugins, index, route, service)
    local chain = { by_consumer = false, outranked = {} }
    for name in pairs(index) do
        if not plugins:get(name) then
            -- It may be one that refuses requests: without it none may pass.
            chain.failure = ("plugin '%s' is not loaded"):format(name)
        end
    end
    for _, plugin in ipairs(plugins:list()) do
        local named = index[plugin.name]
        if named then
            local binding, is_outranked = winner(named.plain, route, service)
            chain.outranked[plugin.name] = is_outranked or nil
            chain.by_consumer = chain.by_consumer or named.by_consumer
            chain.failure = binding and binding.err or chain.failure
            if binding or named.by_consumer then
                add_steps(chain, plugin, binding and binding.conf, named.by_consumer)
            end
        end
    end
    return chain
end

--- Chooses among the bindings of a consumer.
-- @tparam {table,...} bindings
-- @tparam table scope `{route, service, outranked}` of the request
-- @treturn table plugin name -> binding
function _M.choose(bindings, scope)
    local best, ranks = {}, {}
    for _, binding in ipairs(bindings) do
        local name, route, service = binding.name, binding.route, binding.service
        local rank = (route and 2 or 0) + (service and 1 or 0)
        local fits = (not route or route == scope.route)
            and (not service or service == scope.service)
            and (rank > 0 or not scope.outranked[name])
        if fits and rank >= (ranks[name] or 0) then
            best[name], ranks[name] = binding, rank
        end
    end
    return best
end

--- The configuration of a step: the consumer's where it has one. `consumer_confs` of the scope
-- finds them, once a request.
local function conf_of(step, ctx)
    if not step.by_consumer or not ctx.consumer then
        return step.conf
    end
    local confs = ctx.consumer_confs
    if not confs then
        local scope = ctx.plan.scope
        confs = scope.consumer_confs(ctx.consumer, scope)
        ctx.consumer_confs = confs
    end
    return confs[step.name] or step.conf
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

local function run_step(step, ctx)
    local conf = conf_of(step, ctx)
    if conf then
        step.run(step.plugin, conf)
    end
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
        local ok, err = pcall(run_step, step, ctx)
        if not ok then
            ngx.log(ngx.ERR, "plugin '", step.name, "' failed in ", phase, ": ", err)
        end
    end
end

return _M
