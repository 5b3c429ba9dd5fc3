--- The balancer in C beside the rotation in Lua: the same turns, and what a retry gets.

local core = require("test.unit.support.core")
local rotation = require("gateway.proxy.rotation")

local ffi, lib = core.ffi, core.lib

local RUNS = 100
local SEED = os.time()
local MOST = { 1, 2, 7, 100, 65535 }

local function build(weights, slots)
    local array = ffi.new("uint32_t[?]", math.max(#weights, 1), weights)
    local size = tonumber(lib.sluice_core_rotation_bound(#weights, slots))
    local memory, raw = core.memory(size)
    local used = ffi.new("uint64_t[1]")
    assert.equal(0, lib.sluice_core_rotation_build(array, #weights, slots, memory, size, used))
    assert.equal(0, lib.sluice_core_rotation_check(memory, used[0]))
    return ffi.cast("sluice_core_rotation_t *", memory), raw
end

local function random_weights()
    local weights, most = {}, MOST[math.random(#MOST)]
    for i = 1, math.random(0, math.random() < 0.1 and 200 or 9) do
        weights[i] = math.random(0, most)
    end
    return weights
end

local function in_lua(weights, slots)
    local peers = {}
    for i, weight in ipairs(weights) do
        peers[i] = { ip = "10.0.0." .. i, port = 80, weight = weight, number = i }
    end
    return rotation.new(peers, slots)
end

--- What nginx has in $upstream_addr between two tries.
local function upstream_addr(tried)
    local names = {}
    for i, number in ipairs(tried) do
        names[i] = "10.0.0." .. number .. ":80"
    end
    return table.concat(names, ", ") .. " : "
end

describe("the balancer in C", function()
    it("takes the turns of the rotation in Lua", function()
        math.randomseed(SEED)
        for run = 1, RUNS do
            local weights, slots = random_weights(), math.random(1, 1200)
            local turning, raw = build(weights, slots)
            local slow = in_lua(weights, slots)
            local case = ("run %d, seed %d"):format(run, SEED)
            assert.equal(slow.length, lib.sluice_core_rotation_length(turning), case)
            local position = ffi.new("sluice_core_position_t")
            for _ = 1, slow.length + 3 do
                local target = lib.sluice_core_balance(turning, position, 0, nil, nil)
                if slow.empty then
                    assert.equal(lib.SLUICE_CORE_NONE, target, case)
                else
                    assert.equal(slow:pick().number - 1, target, case)
                end
            end
            assert(raw)
        end
    end)

    it("gives a retry whom the rotation in Lua gives it, where that is the next", function()
        for run = 1, RUNS do
            local weights, slots = random_weights(), math.random(1, 300)
            local turning, raw = build(weights, slots)
            local slow = in_lua(weights, slots)
            local position = ffi.new("sluice_core_position_t")
            local bits = ffi.new("uint64_t[4]")
            local tried, seen = {}, {}
            for try = 1, slow.empty and 0 or #slow.peers do
                local case = ("run %d, try %d, seed %d"):format(run, try, SEED)
                slow.at = tonumber(position.word / 65536) % slow.length
                local due = slow.turns[slow.at + 1].number
                local expected = slow:pick_untried(upstream_addr(tried)).number
                local target = lib.sluice_core_balance(turning, position, 0, nil, bits) + 1
                assert.is_nil(seen[target], case)
                assert.is_true(weights[target] > 0, case)
                if not seen[due] or try == #slow.peers then
                    assert.equal(expected, target, case)
                end
                tried[try], seen[target] = target, true
            end
            assert(raw)
        end
    end)
end)
