-- Which configuration of a plugin a request runs, by the core (module/core/chain/scope.h): for each
-- line of the input, in JSON, one of the output.
--
-- A line has `members`, groups with their consumers; the `plugin` of all `bindings`, each with the
-- `route`, `service`, `consumer` and `group` that it has; and `asked`, requests with a `route`, a
-- `service`, and the `consumer` that their authentication finds, if it does. All are names. The
-- answer has for each request `{ binding, rank }`, the binding's place from 0 on; `{ -1, 0 }`: it
-- runs none.

local abi = require("sluice.ffi.abi")
local cjson = require("cjson")
local core = require("test.unit.support.core")

abi.declare("core/chain")

local ffi, lib, NOBODY = core.ffi, core.lib, core.NOBODY

local OF_CONSUMERS, OF_GROUPS = 1, 2 -- flags.h

-- Slots of names, in the order in which they come.
local function new_slots(kind, entities)
    local slots, count = {}, 0
    return function(name)
        if not name then
            return NOBODY
        elseif not slots[name] then
            slots[name], count = count, count + 1
            entities[#entities + 1] = { kind = kind, slot = slots[name], [0] = name }
        end
        return slots[name]
    end
end

local function add_binding(entities, plugin, owners, flags)
    local count = 0
    for _, entity in ipairs(entities) do
        count = count + (entity.kind == lib.SLUICE_CORE_PLUGIN and 1 or 0)
    end
    entities[#entities + 1] = {
        kind = lib.SLUICE_CORE_PLUGIN,
        slot = count,
        [0] = owners.consumer or NOBODY,
        [1] = owners.group or NOBODY,
        [2] = owners.route or NOBODY,
        [3] = owners.service or NOBODY,
        [4] = plugin,
        [5] = flags,
    }
end

-- An image of all that counts, and slots by name.
local function image_of(world)
    local entities = {}
    local slot_of = {
        consumer = new_slots(lib.SLUICE_CORE_CONSUMER, entities),
        group = new_slots(lib.SLUICE_CORE_GROUP, entities),
        route = new_slots(lib.SLUICE_CORE_ROUTE, entities),
        service = new_slots(lib.SLUICE_CORE_SERVICE, entities),
    }
    local memberships, has = 0, {}
    for group, consumers in pairs(world.members) do
        for _, consumer in ipairs(consumers) do
            local membership = {
                kind = lib.SLUICE_CORE_MEMBERSHIP,
                slot = memberships,
                [0] = slot_of.consumer(consumer),
                [1] = slot_of.group(group),
            }
            entities[#entities + 1], memberships = membership, memberships + 1
        end
    end
    for _, binding in ipairs(world.bindings) do
        local owners = {}
        for owner, name in pairs(binding) do
            owners[owner] = slot_of[owner](name)
            has[owner] = true
        end
        add_binding(entities, world.plugin, owners, 0)
    end
    -- As the gateway puts them in (gateway.image.placeholders).
    for owner, flag in pairs({ consumer = OF_CONSUMERS, group = OF_GROUPS }) do
        if has[owner] then
            add_binding(entities, world.plugin, {}, flag)
        end
    end
    for _, asked in ipairs(world.asked) do
        for _, owner in ipairs({ "consumer", "route", "service" }) do
            slot_of[owner](asked[owner])
        end
    end
    return assert(core.build(entities)), slot_of
end

local function choose(view, slot_of, plugin, asked)
    local name = ffi.new("sluice_core_text_t", plugin, #plugin)
    local scope = ffi.new("sluice_scope_t")
    scope.view, scope.plugins, scope.count = view, name, 1
    scope.route, scope.service = slot_of.route(asked.route), slot_of.service(asked.service)
    local step, chosen = ffi.new("sluice_scope_step_t[1]"), ffi.new("sluice_scope_chosen_t")
    assert(lib.sluice_scope_choose(scope, step, chosen, nil, nil) == 0)
    local found, rank = step[0].found, step[0].rank
    if chosen.count == 0 then
        return { -1, 0 }
    end
    local before = ffi.new("sluice_core_found_t", found)
    if asked.consumer and chosen.owners ~= 0 then
        local consumer = slot_of.consumer(asked.consumer)
        local won = lib.sluice_scope_consumer(scope, consumer, chosen.owners, step, 1)
        if won > 0 then
            before, rank = step[0].found, step[0].rank
        end
    end
    if before.record == nil then
        return { -1, 0 }
    end
    local head = ffi.new("sluice_core_entity_t")
    lib.sluice_core_head(before, head)
    return { head.slot, rank }
end

for line in io.lines() do
    local world = cjson.decode(line)
    local image, slot_of = image_of(world)
    local view, answers = core.view(image), {}
    for i, asked in ipairs(world.asked) do
        answers[i] = choose(view, slot_of, world.plugin, asked)
    end
    io.write(cjson.encode(answers), "\n")
end
