--- Makes changes through the control worker, and bare commits beside them, for the scenario
-- "store".
--
-- In the control worker only. A file `order` in nginx's prefix has a number, a case and a count;
-- what each took, in milliseconds, stands behind the same number in DONE. Cases:
-- "apply", changes one after the other; "commit", bare commits of the same row in the thread of
-- bench_commit; "bulk", changes by WRITERS at the same time: what all of them took, divided by
-- their number.

local apply = require("gateway.control.apply")
local clock = require("clock")
local entity_text = require("gateway.store.entity_text")

local ngx = ngx

local WRITERS = 10
local LOOK_SECONDS = 0.01
-- In a folder that the workers may write to.
local DONE = "/store/bench.done"

local _M = {
    name = "bench-store",
    version = "0.1.0",
    priority = 1,
    schema = { name = "bench-store", fields = { { config = { type = "record", fields = {} } } } },
}

local changes = 0

local function read_row(name)
    local row, err = apply.read("get", "routes", name)
    return row or error("bench-store: " .. tostring(err.message or err.err), 0)
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
    local made, err = apply.transaction({ { kind = "routes", put = route } })
    if not made then
        error("bench-store: " .. tostring(err.message or err.err), 0)
    end
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

local function look(folder, last)
    local file = io.open(folder .. "/order")
    local number, case, count = (file and file:read("*a") or ""):match("^(%d+) (%a+) (%d+)\n$")
    if file then
        file:close()
    end
    if not number or number == last then
        return last
    end
    local ok, took = pcall(cases[case], tonumber(count), folder)
    local path = folder .. DONE
    local said = assert(io.open(path .. ".new", "w"))
    said:write(number, " ", ok and table.concat(took, " ") or tostring(took), "\n")
    said:close()
    assert(os.rename(path .. ".new", path))
    return number
end

local function work(premature, folder)
    local last
    while not premature and not ngx.worker.exiting() do
        if apply.state().state == "live" then
            last = look(folder, last)
        end
        ngx.sleep(LOOK_SECONDS)
    end
end

--- @phases init_worker
function _M.init_worker()
    if ngx.worker.id() == 0 then
        assert(ngx.timer.at(0, work, ngx.config.prefix()))
    end
end

return _M
