-- Random sequences of changes to routes: image and delta, merges at random moments, against the
-- oracle.
--
-- SEED repeats a run, LONG=1 makes it longer.

local core = require("test.unit.support.core")
local core_router = require("test.unit.support.core_router")
local oracle = require("test.unit.support.oracle")
local random_routes = require("test.unit.support.routes")
local soak = require("test.unit.support.soak")

local ROUNDS = soak(300, 3000)
local STEPS, REQUESTS, SLOTS, MOST = 15, 6, 14, 4

local seed = require("test.unit.support.seed")("core_changes_random")

local random = math.random

--- One step: `{ merge =, { slot =, route = or false }, ... }`.
local function random_step()
    local step, taken = { merge = random(8) == 1 }, {}
    for _ = 1, random(MOST) do
        local slot = random(SLOTS) - 1
        if not taken[slot] then
            taken[slot] = true
            step[#step + 1] = { slot = slot, route = random(4) > 1 and random_routes.route() }
        end
    end
    return step
end

local function as_entity(change)
    if not change.route then
        return { kind = core.lib.SLUICE_CORE_ROUTE, slot = change.slot, gone = true }
    end
    return core.route(change.route, change.slot, change.slot)
end

--- The configuration, by the core and as plain tables.
local function new_world()
    local image = assert(core.build({}, 1))
    local view = core.view(image)
    return { view = view, delta = core.delta(image, view, 1), routes = {} }
end

local function take(world, step)
    local changes = {}
    for i, change in ipairs(step) do
        changes[i] = as_entity(change)
        world.routes[change.slot] = change.route or nil
    end
    local view = world.view
    local word = core.apply(world.delta, view, changes)
    if word == "full" or step.merge then
        local left = word == "full" and changes or {}
        local revision = tonumber(view.revision) + 1
        local image = core.merge(view, left, revision)
        world.delta = core.delta(image, view, revision)
    else
        assert.equal("ok", word)
    end
end

local function answers(world, request)
    local list, slots = {}, {}
    for slot = 0, SLOTS - 1 do
        if world.routes[slot] then
            list[#list + 1] = world.routes[slot]
            slots[#list] = slot
        end
    end
    local word, match = core_router.ask_with_lines(world.view, request)
    local got = word == "ok" and match.slot or word
    local prefix = word == "ok" and match.prefix or -1
    local best = oracle.match(list, request)
    local text = best and best.prefix
    return ("%s, %d bytes"):format(got, prefix),
        ("%s, %d bytes"):format(best and slots[best.route] or "none", text and #text or -1)
end

local function differs(steps, request)
    local world = new_world()
    for _, step in ipairs(steps) do
        take(world, step)
    end
    local got, want = answers(world, request)
    return got ~= want, got, want
end

--- All that is one step, one change or one merge less.
local function smaller(steps)
    local cases = {}
    local function copy()
        local case = {}
        for i, step in ipairs(steps) do
            case[i] = { merge = step.merge, unpack(step) }
        end
        return case
    end
    for i, step in ipairs(steps) do
        local case = copy()
        table.remove(case, i)
        cases[#cases + 1] = case
        if step.merge then
            case = copy()
            case[i].merge = false
            cases[#cases + 1] = case
        end
        for j = 1, #step > 1 and #step or 0 do
            case = copy()
            table.remove(case[i], j)
            cases[#cases + 1] = case
        end
    end
    return cases
end

local function report(steps, request)
    local found = true
    while found do
        found = false
        for _, case in ipairs(smaller(steps)) do
            if differs(case, request) then
                steps, found = case, true
                break
            end
        end
    end
    local _, got, want = differs(steps, request)
    return ("seed %d\nsteps %s\nrequest %s\nrouter: %s\noracle: %s"):format(
        seed,
        random_routes.show(steps),
        random_routes.show(request),
        got,
        want
    )
end

describe("image and delta against the oracle", function()
    it(("agree over %d random sequences of changes, seed %d"):format(ROUNDS, seed), function()
        math.randomseed(seed)
        local matched, total = 0, 0
        for _ = 1, ROUNDS do
            local world, steps = new_world(), {}
            for number = 1, STEPS do
                steps[number] = random_step()
                take(world, steps[number])
                for _ = 1, REQUESTS do
                    local request = random_routes.request()
                    local got, want = answers(world, request)
                    if got ~= want then
                        error(report(steps, request), 0)
                    end
                    total = total + 1
                    matched = matched + (want:find("none") and 0 or 1)
                end
            end
        end
        assert.is_true(matched > total / 2, ("only %d of %d matched"):format(matched, total))
    end)
end)
