--- Orders of the lab to a plugin of its own in the control worker (bench/ordered.py gives them).
--
-- A file `order` in nginx's prefix has a number, a case and a count. What the case returns,
-- numbers, stands behind the same number in DONE, renamed into place; or why it failed.
-- @module orders

local trees = require("trees")

local queue = trees.load("gateway.writer.queue")

local ngx = ngx

local LOOK_SECONDS = 0.01
-- In a folder that the workers may write to.
local DONE = "/store/bench.done"

local _M = {}

local function look(cases, folder, last)
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

local function work(premature, cases, folder)
    local last
    while not premature and not ngx.worker.exiting() do
        if queue.state().state == "live" then
            last = look(cases, folder, last)
        end
        ngx.sleep(LOOK_SECONDS)
    end
end

--- Follows orders, in worker 0.
-- @tparam table cases name -> `(count, folder)` -> array of numbers; may yield and throw
-- @phases init_worker
function _M.follow(cases)
    if ngx.worker.id() == 0 then
        assert(ngx.timer.at(0, work, cases, ngx.config.prefix()))
    end
end

--- Throws what the control worker refuses.
function _M.check(result, err)
    return result or error("the lab: " .. tostring(err.message or err.err), 0)
end

return _M
