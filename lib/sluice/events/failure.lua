--- Reports callbacks that fail: with their cause, and not once for each event.
-- @module sluice.events.failure

local _M = {}

local LOG_INTERVAL_SECONDS = 10

--- What was thrown, as a text.
-- @param err any value
-- @treturn string
function _M.text(err)
    -- What is thrown may have a __tostring that fails, or gives no text.
    local shown, text = pcall(tostring, err)
    if not shown or type(text) ~= "string" then
        return "a " .. type(err) .. " that cannot be shown"
    end
    return text
end

--- The same with a traceback. For an error handler: the stack is that of the failure.
-- @param err any value
-- @treturn string
function _M.describe(err)
    local text = _M.text(err)
    local traced, trace = pcall(debug.traceback, text, 3)
    return traced and trace or text
end

--- Logs a failure of a subscription, at most once in 10 seconds; the next line counts the others.
-- @tparam table subscription (sluice.events.bus)
-- @tparam table context of the dispatcher
-- @tparam string text of `describe`
-- @tparam number now seconds that only grow
function _M.log(subscription, context, text, now)
    if now < subscription.quiet_until then
        subscription.unlogged = subscription.unlogged + 1
        return
    end
    local more = ""
    if subscription.unlogged > 0 then
        more = (" (and %d more since the last such line)"):format(subscription.unlogged)
    end
    subscription.unlogged = 0
    subscription.quiet_until = now + LOG_INTERVAL_SECONDS
    ngx.log(
        ngx.ERR,
        ("sluice: subscription %d to %s/%s failed at event %s/%s%s: "):format(
            subscription.id,
            subscription.source,
            subscription.event,
            tostring(context.source),
            tostring(context.event),
            more
        ),
        text
    )
end

return _M
