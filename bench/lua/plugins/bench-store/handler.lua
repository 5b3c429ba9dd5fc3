--- Makes changes through the control worker, and bare commits beside them, for the scenario
-- "store".
--
-- In the control worker only, by orders (orders.lua). Each case says what its changes took, in
-- milliseconds:
-- "apply", changes one after the other; "commit", bare commits of the same row in the thread of
-- bench_commit; "bulk", changes by WRITERS at the same time: what all of them took, divided by
-- their number.

local trees = require("trees")

local clock = require("clock")
local entity_text = require("gateway.store.entity_text")
local orders = require("orders")
local queue = trees.load("gateway.writer.queue")
local role = trees.load("gateway.writer.role")

local ngx = ngx

local WRITERS = 10

local _M = {
    VERSION = "0.1.0",
    PRIORITY = 1,
}

local changes = 0

local check = orders.check

local function read_row(name)
    return check(role.read("get", "routes", name))
end

-- Routes by name, as they were when they were read: what is measured is changes.
local routes = {}

--- A route gets another second path.
local function change(name)
    changes = changes + 1
    local route = routes[name] or entity_text.decode(read_row(name).text)
    routes[name] = route
    route.paths[2] = ("/changed-%d"):format(changes)
    local begun = clock.now()
    check(queue.transaction({ { kind = "routes", put = route } }))
    return (clock.now() - begun) * 1000
end

local cases = {}

function cases.apply(count)
    local took = {}
    for i = 1, count do
        took[i] = change("route-1")
    end
    return took
end

function cases.commit(count, folder)
    local text = read_row("route-1").text
    local path = folder .. "/store/bench.db"
    local ok, took = ngx.run_worker_thread("sluice_store", "bench_commit", "run", path, text, count)
    return ok and took or error(took, 0)
end

function cases.bulk(count)
    local threads, begun = {}, clock.now()
    for i = 1, WRITERS do
        threads[i] = ngx.thread.spawn(function()
            for _ = 1, count / WRITERS do
                change("route-" .. i)
            end
        end)
    end
    for i = 1, WRITERS do
        assert(ngx.thread.wait(threads[i]))
    end
    return { (clock.now() - begun) * 1000 / count }
end

--- @phases init_worker
function _M.init_worker()
    orders.follow(cases)
end

return _M
