--- Changes routes again and again through the control worker, for the lab's scenario "change".
--
-- In the control worker only. A file `order` in nginx's prefix has the changes a second; 0 ends
-- them. Those of a turn are asked for side by side, each of another route. What was done stands in
-- DONE, renamed into place: the number of changes, and the longest that one took in
-- milliseconds.

local trees = require("trees")

local entity_text = require("gateway.store.entity_text")
local queue = trees.load("gateway.writer.queue")
local role = trees.load("gateway.writer.role")

local ngx = ngx

local TURN_SECONDS = 0.02
-- Changes of a turn.
local MOST_OWED = 50
-- In a folder that the workers may write to.
local DONE = "/store/bench.done"

local _M = {
    VERSION = "0.1.0",
    PRIORITY = 1,
}

local function read_rate(folder)
    local file = io.open(folder .. "/order")
    if not file then
        return 0
    end
    local rate = tonumber(file:read("*a"))
    file:close()
    return rate or 0
end

local function say(folder, done)
    local path = folder .. DONE
    local file = assert(io.open(path .. ".new", "w"))
    file:write(("%d %.3f\n"):format(done.count, done.longest_ms))
    file:close()
    assert(os.rename(path .. ".new", path))
end

-- Routes by name, as they were when they were read: what is measured is changes.
local routes = {}

local function find(name)
    local found = routes[name]
    if not found then
        local row = assert(role.read("get", "routes", name))
        found = entity_text.decode(row.text)
        routes[name] = found
    end
    return found
end

--- A route gets another second path: what it matches has changed.
local function change(name, done)
    local route = find(name)
    route.paths[2] = ("/changed-%d"):format(done.count)
    local begun = ngx.now()
    local made, err = queue.transaction({ { kind = "routes", put = route } })
    if not made then
        error("bench-change: " .. tostring(err.message or err.err), 0)
    end
    ngx.update_time()
    done.count = done.count + 1
    done.longest_ms = math.max(done.longest_ms, (ngx.now() - begun) * 1000)
end

local function turn(count, done)
    local threads = {}
    for i = 1, count do
        threads[i] = ngx.thread.spawn(change, "route-" .. i, done)
    end
    for i = 1, count do
        local ok, err = ngx.thread.wait(threads[i])
        if not ok then
            ngx.log(ngx.ERR, err)
        end
    end
end

local function work(premature, folder)
    local done, owed, last = { count = 0, longest_ms = 0 }, 0, ngx.now()
    while not premature and not ngx.worker.exiting() do
        local begun = ngx.now()
        -- What a slow turn has left undone is of the next one, but no more than so much.
        owed = math.min(owed + read_rate(folder) * (begun - last), MOST_OWED)
        last = begun
        local count = math.floor(owed)
        owed = owed - count
        if count > 0 then
            turn(count, done)
            say(folder, done)
        end
        ngx.update_time()
        ngx.sleep(math.max(0.001, begun + TURN_SECONDS - ngx.now()))
    end
end

--- @phases init_worker
function _M.init_worker()
    if ngx.worker.id() == 0 then
        assert(ngx.timer.at(0, work, ngx.config.prefix()))
    end
end

return _M
