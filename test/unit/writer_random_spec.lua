--- Random transactions through the writer: what is published is what a dictionary has, and what a
--- build of every row has, whatever merges, overflows and restarts come between.

local soak = require("test.unit.support.soak")
local support = require("test.unit.support.writer")

local STEPS = soak(1000, 10000)
local SEED = require("test.unit.support.seed")("writer_random")

local function id(kind, number)
    return ("%08x-0000-4000-8000-%012d"):format(kind, number)
end

local function ref(kind, number)
    return { id = id(kind, number) }
end

local function one_of(list)
    return list[math.random(#list)]
end

local function maybe(value)
    return math.random(2) == 1 and value or nil
end

-- kind -> { number of the kind, entities of a few, made at random }
local MAKE = {
    services = function(i)
        return {
            id = id(1, i),
            name = "s" .. i,
            host = one_of({ "a", "u1", "10.0.0.1" }),
            port = math.random(65535),
            protocol = one_of({ "http", "https" }),
            retries = 5,
            path = maybe("/x"),
            connect_timeout = 1,
            write_timeout = 2,
            read_timeout = math.random(9),
            enabled = math.random(4) > 1,
        }
    end,
    routes = function(i)
        return {
            id = id(2, i),
            name = "r" .. math.random(40),
            service = maybe(ref(1, math.random(6))),
            paths = { "/" .. math.random(9), maybe("~/" .. math.random(9)) },
            hosts = maybe({ "h" .. math.random(5) .. ".x", "*.y" }),
            headers = maybe({ x = { "1", "2" } }),
            strip_path = math.random(2) == 1,
            protocols = { "https", maybe("http") },
            regex_priority = math.random(-3, 3),
            created_at = math.random(3),
        }
    end,
    consumers = function(i)
        return { id = id(3, i), username = "c" .. math.random(8), custom_id = maybe("k" .. i) }
    end,
    keyauth_credentials = function(i)
        return { id = id(4, i), key = "key" .. math.random(12), consumer = ref(3, math.random(6)) }
    end,
    consumer_groups = function(i)
        return { id = id(8, i), name = "g" .. math.random(6) }
    end,
    consumer_group_consumers = function(i)
        return {
            id = id(9, i),
            consumer_group = ref(8, math.random(4)),
            consumer = ref(3, math.random(6)),
        }
    end,
    plugins = function(i)
        local owner = math.random(3)
        return {
            id = id(5, i),
            name = one_of({ "key-auth", "rate-limiting", "http-log" }),
            consumer = owner == 1 and ref(3, math.random(6)) or nil,
            consumer_group = owner == 2 and ref(8, math.random(4)) or nil,
            route = maybe(ref(2, math.random(20))),
            service = maybe(ref(1, math.random(6))),
            enabled = math.random(4) > 1,
            config = { fill = ("x"):rep(math.random(200)) },
        }
    end,
    upstreams = function(i)
        return { id = id(6, i), name = "u" .. math.random(5), slots = 100 }
    end,
    targets = function(i)
        return {
            id = id(7, i),
            upstream = ref(6, math.random(3)),
            target = "t" .. math.random(9) .. ":80",
            weight = math.random(0, 100),
        }
    end,
}

local COUNTS = {
    services = 6,
    routes = 20,
    consumers = 6,
    consumer_groups = 4,
    consumer_group_consumers = 9,
    keyauth_credentials = 10,
    plugins = 15,
    upstreams = 3,
    targets = 9,
}
local KINDS = {}
for kind in pairs(COUNTS) do
    KINDS[#KINDS + 1] = kind
end
table.sort(KINDS)

-- Who goes with what it refers to.
local CASCADES = {
    { "plugins", "consumer" },
    { "plugins", "consumer_group" },
    { "plugins", "route" },
    { "plugins", "service" },
    { "keyauth_credentials", "consumer" },
    { "consumer_group_consumers", "consumer" },
    { "consumer_group_consumers", "consumer_group" },
    { "targets", "upstream" },
}

local function random_change(opened)
    local kind = one_of(KINDS)
    local entity = MAKE[kind](math.random(COUNTS[kind]))
    if math.random(4) == 1 then
        return { kind = kind, delete = entity.id }, kind, entity.id
    end
    return support.put(opened, kind, entity), kind, entity.id, entity
end

local function random_changes(opened)
    local changes, made, seen = {}, {}, {}
    for _ = 1, math.random(3) do
        local change, kind, key, entity = random_change(opened)
        if not seen[key] then
            seen[key] = true
            changes[#changes + 1] = change
            made[#made + 1] = { kind = kind, id = key, entity = entity, text = change.put }
        end
    end
    return changes, made
end

local function learn(dictionary, made)
    for _, it in ipairs(made) do
        dictionary[it.kind][it.id] = it.entity and it or nil
    end
    for _, cascade in ipairs(CASCADES) do
        local kind, field = cascade[1], cascade[2]
        for key, it in pairs(dictionary[kind]) do
            local other = it.entity[field]
            local of = other and field .. "s"
            if other and not dictionary[of][other.id] then
                dictionary[kind][key] = nil
            end
        end
    end
end

-- The texts that an image is to have.
local function expected(dictionary)
    local out = {}
    for kind, entities in pairs(dictionary) do
        for _, it in pairs(entities) do
            local entity = it.entity
            local service = kind == "routes" and entity.service
            local is_hidden = entity.enabled == false
                or (service and dictionary.services[service.id].entity.enabled == false)
            -- Of memberships an image has the references alone, as a full build shows.
            local has_text = kind ~= "consumer_group_consumers" and not is_hidden
            out[#out + 1] = has_text and it.text or nil
        end
    end
    table.sort(out)
    return table.concat(out, "\n")
end

local function bodies(text)
    local out = {}
    for line in text:gmatch("[^\n]+") do
        out[#out + 1] = line:match("{.*}$")
    end
    table.sort(out)
    return table.concat(out, "\n")
end

describe("the writer", function()
    after_each(support.clean)

    it("publishes what a dictionary and a full build have, over merges and restarts", function()
        math.randomseed(SEED)
        local where = " (SEED=" .. SEED .. ")"
        local place = support.place()
        local opened = support.open(place)
        local dictionary, made_count, job = {}, 0, nil
        for _, kind in ipairs(KINDS) do
            dictionary[kind] = {}
        end
        for step = 1, STEPS do
            local members, made = {}, {}
            for i = 1, math.random(2) do
                members[i], made[i] = random_changes(opened)
            end
            local results, err = opened:batch(members)
            assert.is_truthy(results, err and err.message)
            for i, result in ipairs(results) do
                if result.revision then
                    made_count = made_count + 1
                    learn(dictionary, made[i])
                end
            end
            local dice = math.random(60)
            if dice == 1 and not job then
                job = opened:start_merge()
            elseif dice == 2 and job then
                local merged, why = opened:merge(job)
                assert.is_nil(why)
                if merged then
                    opened:finish_merge(job)
                end
                job = nil
            elseif dice == 3 then
                local live = opened:live()
                assert(opened:save(live))
                assert(opened:compact(live.base_revision))
            elseif dice <= 5 then
                opened:close()
                if dice == 5 then
                    place.forget()
                end
                opened, job = support.open(place), nil
            end
            if step % 10 == 0 or dice <= 5 then
                local text, revision = support.published(place)
                assert.equal(opened.store:revision().revision, revision)
                assert.equal(expected(dictionary), bodies(text), "step " .. step .. where)
                assert.equal(support.built(opened), text, "step " .. step .. where)
            end
        end
        assert.is_true(made_count > STEPS / 4)
        opened:close()
    end)
end)
