-- Plugin chains: which configuration wins, in which order plugins run. The
-- oracle asks the scopes in order of precedence, one by one, for each request.

local chain = require("gateway.plugin.chain")
local registry = require("gateway.plugin.registry")

local function plugin(name, priority, phases)
    local out = { name = name, priority = priority, version = "1", schema = { fields = {} } }
    for _, phase in ipairs(phases) do
        out[phase] = function() end
    end
    package.loaded["plugins." .. name] = out
    return out
end

local function registry_of(...)
    local names = {}
    for _, each in ipairs({ ... }) do
        names[#names + 1] = each.name
    end
    return assert(registry.load(names))
end

local function binding(id, name, scope)
    scope = scope or {}
    return {
        name = name,
        conf = { is = id },
        consumer = scope.consumer,
        route = scope.route,
        service = scope.service,
    }
end

--- An index of what is bound to no consumer; the others stand behind a placeholder.
local function index_of(bindings)
    local plain, placeholders = {}, {}
    for _, each in ipairs(bindings) do
        if each.consumer then
            table.insert(placeholders, { name = each.name, consumer_only = true })
        else
            table.insert(plain, each)
        end
    end
    return chain.index({ placeholders, plain })
end

local function new_scope(chains, bindings, request)
    return {
        route = request.route,
        service = request.service,
        outranked = chains.outranked,
        consumer_confs = function(consumer, scope)
            local own, confs = {}, {}
            for _, each in ipairs(bindings) do
                if each.consumer == consumer.id then
                    table.insert(own, each)
                end
            end
            for name, chosen in pairs(chain.choose(own, scope)) do
                confs[name] = chosen.conf
            end
            return confs
        end,
    }
end

local function run_with(chains, phase, ctx)
    local ran = {}
    for _, step in ipairs(chains[phase] or {}) do
        step.run = function(_, conf)
            ran[#ran + 1] = conf.is
        end
    end
    local run = chain.runner(chains[phase])
    if run then
        run(ctx)
    end
    return ran
end

-- Most specific first.
local PRECEDENCE = {
    { "consumer", "route", "service" },
    { "consumer", "route" },
    { "consumer", "service" },
    { "route", "service" },
    { "consumer" },
    { "route" },
    { "service" },
    {},
}

local function oracle(bindings, request)
    for _, kinds in ipairs(PRECEDENCE) do
        for _, each in ipairs(bindings) do
            local fits, size = true, 0
            for _, kind in ipairs({ "consumer", "route", "service" }) do
                size = size + (each[kind] and 1 or 0)
            end
            for _, kind in ipairs(kinds) do
                fits = fits and each[kind] and each[kind] == request[kind]
            end
            if fits and size == #kinds then
                return { each.conf.is }
            end
        end
    end
    return {}
end

describe("plugin chain", function()
    it("runs plugins by priority, equal ones by name backwards", function()
        local plugins = registry_of(
            plugin("t-low", 1, { "access" }),
            plugin("t-a", 5, { "access" }),
            plugin("t-high", 9, { "access", "log" }),
            plugin("t-b", 5, { "access" })
        )
        local index = index_of({
            binding("low", "t-low"),
            binding("a", "t-a"),
            binding("high", "t-high"),
            binding("b", "t-b"),
        })
        local chains = chain.compile(plugins, index, "r", "s")
        assert.same({ "high", "b", "a", "low" }, run_with(chains, "access", {}))
        assert.same({ "high" }, run_with(chains, "log", {}))
        assert.is_nil(chains.header_filter)
    end)

    it(
        "fails where a plugin is not there, or cannot do with the configuration that wins",
        function()
            local plugins = registry_of(plugin("t-x", 1, { "access" }))
            local bad = { name = "t-x", err = "no", route = "r" }
            local function failure(...)
                return chain.compile(plugins, index_of({ ... }), "r", nil).failure
            end
            assert.equal("no", failure(bad, binding("global", "t-x")))
            assert.is_nil(
                failure({ name = "t-x", err = "no" }, binding("r", "t-x", { route = "r" }))
            )
            assert.equal("plugin 't-gone' is not loaded", failure(binding("global", "t-gone")))
        end
    )

    it("chooses as the list of scopes does, for every combination", function()
        local plugins = registry_of(plugin("t-x", 1, { "access" }))
        local scopes = {}
        for _, consumer in ipairs({ false, "c1", "c2" }) do
            for _, route in ipairs({ false, "r1", "r2" }) do
                for _, service in ipairs({ false, "s1", "s2" }) do
                    scopes[#scopes + 1] = {
                        consumer = consumer or nil,
                        route = route or nil,
                        service = service or nil,
                    }
                end
            end
        end
        math.randomseed(42)
        for round = 1, 3000 do
            local bindings = {}
            for i, scope in ipairs(scopes) do
                if math.random() < 0.25 then
                    table.insert(bindings, math.random(#bindings + 1), binding(i, "t-x", scope))
                end
            end
            local index = index_of(bindings)
            for _, request in ipairs({
                { route = "r1", service = "s1", consumer = "c1" },
                { route = "r1", service = "s2", consumer = "c2" },
                { route = "r2", service = "s1" },
                { route = "r2", consumer = "c1" },
                { route = "r3", service = "s3", consumer = "c3" },
                {},
            }) do
                local chains = chain.compile(plugins, index, request.route, request.service)
                local ctx = {
                    consumer = request.consumer and { id = request.consumer },
                    plan = { scope = new_scope(chains, bindings, request) },
                }
                local got = run_with(chains, "access", ctx)
                assert.same(oracle(bindings, request), got, "round " .. round .. " of seed 42")
            end
        end
    end)
end)

describe("plugin registry", function()
    it("loads the bundled plugins, in order", function()
        local plugins = assert(registry.load({ "bundled" }))
        assert.equal("key-auth", plugins:list()[1].name)
        assert.is_table(plugins:get("rate-limiting"))
    end)

    it("says what is wrong with which plugin", function()
        local cases = {
            { nil, "module 'plugins.t%-no%-such' not found" },
            { "text", "does not return a table" },
            { { name = "other" }, "is named 'other' inside" },
            { { name = "t-no-such" }, "priority: number expected" },
            { { name = "t-no-such", priority = 1 }, "version: string expected" },
            { { name = "t-no-such", priority = 1, version = "1" }, "schema: table" },
            {
                {
                    name = "t-no-such",
                    priority = 1,
                    version = "1",
                    schema = { fields = {} },
                    access = 1,
                },
                "access: function expected",
            },
        }
        for _, case in ipairs(cases) do
            package.loaded["plugins.t-no-such"] = case[1]
            local plugins, err = registry.load({ "t-no-such" })
            assert.is_nil(plugins)
            assert.truthy(err:find(case[2]), err)
            assert.truthy(err:find("plugin 't-no-such'", 1, true), err)
        end
        package.loaded["plugins.t-no-such"] = nil
    end)
end)
