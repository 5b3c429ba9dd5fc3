--- Deaths by a signal, which damaged files of images may have been the reason of: the successor has
-- the control worker check them, so that nobody has to look for deaths.
-- @module gateway.control.crashes

local images = require("sluice.ffi.images")

local SOURCE, EVENT = "sluice-gateway", "crash"
-- Old and new ones, at a reload.
local CONTROL = { worker = 0 }
-- An event may come when there is no control worker.
local AGAIN_SECONDS = 1

local _M = {}

local ask_in

local function ask(premature, bus)
    if premature or images.are_checked(images.crashes()) then
        return
    end
    bus:publish(CONTROL, SOURCE, EVENT)
    ask_in(AGAIN_SECONDS, bus)
end

function ask_in(seconds, bus)
    local started, err = ngx.timer.at(seconds, ask, bus)
    if not started then
        ngx.log(ngx.ERR, "the control worker is not asked to check images: ", err)
    end
end

--- Asks for a check if a worker has died since the last one; again each second until it is made.
-- Does not yield.
-- @tparam table bus of sluice.events
-- @phases init_worker
function _M.report(bus)
    -- Such deaths are counted behind init_worker.
    ask_in(0, bus)
end

--- Has a function called in the control worker when somebody asks.
-- @tparam table bus of sluice.events
-- @tparam function on_crash without arguments; may not yield
-- @phases init_worker
function _M.follow(bus, on_crash)
    bus:subscribe(SOURCE, EVENT, function()
        on_crash()
    end)
end

return _M
