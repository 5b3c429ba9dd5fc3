--- Changes routes through the control worker and says how long each took to be published, for the
-- lab's scenario "change".
--
-- In the control worker only, by orders (orders.lua). The times are taken in its threads, by the
-- writer of `timed`. Merges happen when they are ordered, and at no other time. Cases:
-- "merge", the delta is empty after it; "fill", changes until so many percent of the delta are
-- used; "publish", so many changes, one after the other; "merging", the same beside merges without
-- an end. The last two say the nanoseconds of each.

local trees = require("trees")

local entity_text = require("gateway.store.entity_text")
local maintenance = trees.load("gateway.writer.maintenance")
local orders = require("orders")
local queue = trees.load("gateway.writer.queue")
local role = trees.load("gateway.writer.role")

local ngx = ngx

-- Of the writer in `timed`.
local LOG = "/store/publish.log"
-- Routes that are changed at a time to fill a delta, and those that are known.
local FILLING, KNOWN = 200, 2000

local check = orders.check

-- Of the control worker, which is made after this is loaded.
local maintained
local new = maintenance.new
function maintenance.new(...)
    maintained = new(...)
    return maintained
end

local _M = {
    VERSION = "0.1.0",
    PRIORITY = 1,
}

-- As they were when they were read: what is measured is changes.
local routes, changes = {}, 0

--- Of a large configuration some, so that those are read once.
local function read_routes()
    local offset
    while not routes[1] or offset and #routes < KNOWN do
        local rows, next_offset = role.read("list", "routes", { size = 1000, offset = offset })
        for _, row in ipairs(check(rows, next_offset)) do
            local route = entity_text.decode(row.text)
            -- The lab asks for the others.
            routes[#routes + 1] = route.name:find("^route%-") and route or nil
        end
        offset = next_offset
    end
end

--- The next route, with another second path.
local function change()
    changes = changes + 1
    local route = routes[changes % #routes + 1]
    route.paths[2] = ("/changed-%d"):format(changes)
    return { kind = "routes", put = route }
end

local function used()
    local live = check(queue.in_turn("live"))
    return live.used / (live.used + live.room)
end

local function merge()
    local job = check(queue.in_turn("start_merge"))
    check(role.call("merge", job))
    check(queue.in_turn("finish_merge", job))
end

local function publish(count, folder)
    assert(io.open(folder .. LOG, "w")):close()
    for _ = 1, count do
        check(queue.transaction({ change() }))
    end
    local took = {}
    for line in io.lines(folder .. LOG) do
        took[#took + 1] = tonumber(line)
    end
    assert(#took == count, "changes were published otherwise than one by one")
    return took
end

local cases = {}

function cases.merge()
    merge()
    return {}
end

function cases.fill(percent)
    while used() < percent / 100 do
        local some = {}
        for i = 1, math.min(FILLING, #routes) do
            some[i] = change()
        end
        check(queue.transaction(some))
    end
    return {}
end

cases.publish = publish

function cases.merging(count, folder)
    local is_over = false
    local merging = ngx.thread.spawn(function()
        while not is_over do
            merge()
        end
    end)
    local ok, took = pcall(publish, count, folder)
    is_over = true
    local is_merged, err = ngx.thread.wait(merging)
    return is_merged and ok and took or error(ok and err or took, 0)
end

local function prepared(case)
    return function(...)
        if not routes[1] then
            -- Merges are the lab's from now on.
            maintained.look = function()
                return 1
            end
            read_routes()
        end
        return case(...)
    end
end

--- @phases init_worker
function _M.init_worker()
    -- Threads' VMs take the path that this one has, when they are made.
    local folder = debug.getinfo(1, "S").source:match("^@(.*)/plugins/")
    package.path = folder .. "/timed/?.lua;" .. package.path
    local all = {}
    for name, case in pairs(cases) do
        all[name] = prepared(case)
    end
    orders.follow(all)
end

return _M
