--- The lines that the originals log at debug, for those who search logs for them.
--
-- Where nothing is logged at debug they cost nothing: whether it is, is known before the first.
-- @module resty.events.debug_lines

local errlog = require("ngx.errlog")

local _M = {}

--- Whether this worker logs at debug.
-- @phases all but init
function _M.are_wanted()
    return errlog.get_sys_filter_level() >= ngx.DEBUG
end

--- From now on each event of a bus has a line before its handlers run.
-- @tparam table bus
-- @tparam string sender what the sender is called: "wid" or "pid"
-- @tparam[opt] function unwrap from what was published to (data, sender)
function _M.subscribe(bus, sender, unwrap)
    bus:subscribe("*", "*", function(data, event, source, from)
        if unwrap then
            from = select(2, unwrap(data))
        end
        ngx.log(
            ngx.DEBUG,
            "worker-events: handling event; source=",
            source,
            ", event=",
            event,
            (", %s="):format(sender),
            from
        )
    end, true)
end

--- An event was published.
-- @tparam string target "all" or a key
-- @tparam boolean is_repeat the key was known, and nobody gets it
function _M.published(target, is_repeat)
    if is_repeat then
        ngx.log(ngx.DEBUG, "unique event is duplicate on worker #", ngx.worker.id(), ": ", target)
        return
    end
    local count = target == "all" and ngx.worker.count() or 1
    ngx.log(ngx.DEBUG, "event published to ", count, " workers")
end

return _M
