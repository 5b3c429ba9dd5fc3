--- The event that other files of images are live: an idle worker lets go of the old ones, which
-- take memory as long as somebody has mapped them. A busy one has done so with its last request.
-- @module gateway.image.files

local _M = {}

local SOURCE, EVENT = "sluice-gateway", "files"

--- Notifies all workers. Does not yield. Where it cannot, what is old stays mapped until the
-- worker's next request, or the next event.
-- @tparam table bus of sluice.events
-- @treturn true|string|nil what `publish` returns: nil where nobody was notified
-- @treturn nil|string why not
-- @phases any but init
function _M.announce(bus)
    return bus:publish("all", SOURCE, EVENT)
end

--- Has a function called in this worker each time, without arguments.
-- @tparam table bus of sluice.events
-- @tparam function on_files
-- @phases init_worker
function _M.follow(bus, on_files)
    bus:subscribe(SOURCE, EVENT, function()
        on_files()
    end)
end

return _M
