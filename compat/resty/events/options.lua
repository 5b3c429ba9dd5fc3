--- The options of `resty.events`: what may be given, and what sluice.events makes of it.
-- @module resty.events.options

local _M = {}

local DEFAULT_QUEUE = 10240
local DEFAULT_PAYLOAD = 65536
local DEFAULT_UNIQUE_TIMEOUT = 5
local MAX_PAYLOAD = 16 * 1024 * 1024

local function number(name, text, is_valid)
    return { name = name, type = "number", text = text, is_valid = is_valid }
end

local function is_positive(value)
    return value > 0
end

-- In the order in which the original checks them, and in its words.
local CHECKS = {
    number("broker_id", nil, function(value)
        return value >= 0 and value % 1 == 0 and value < ngx.worker.count()
    end),
    {
        name = "listening",
        type = "string",
        is_required = true,
        text = '"listening" option must start with unix:',
        is_valid = function(value)
            return value:sub(1, 5) == "unix:"
        end,
    },
    {
        name = "unique_timeout",
        type = "number",
        type_text = 'optional "unique_timeout" option must be a number',
        text = '"unique_timeout" must be greater than 0',
        is_valid = is_positive,
    },
    number("max_queue_len", nil, is_positive),
    number("max_payload_len", nil, function(value)
        return value > 0 and value <= MAX_PAYLOAD
    end),
    { name = "enable_privileged_agent", type = "boolean" },
    { name = "testing", type = "boolean" },
}

--- What is wrong with the options.
-- @param opts
-- @treturn string|nil
function _M.problem(opts)
    if type(opts) ~= "table" then
        return "Expected a table, got " .. type(opts)
    end
    for _, check in ipairs(CHECKS) do
        local name, value = check.name, opts[check.name]
        if value == nil then
            if check.is_required then
                return ('"%s" option required to start'):format(name)
            end
        elseif type(value) ~= check.type then
            return check.type_text or ('"%s" option must be a %s'):format(name, check.type)
        elseif check.is_valid and not check.is_valid(value) then
            return check.text or ('"%s" option is invalid'):format(name)
        end
    end
    return nil
end

local function between(low, value, high)
    return math.max(low, math.min(value, high))
end

--- The options of sluice.events. `listening` tells apart buses that do not hear each other.
-- @tparam table opts checked
-- @treturn table
function _M.translate(opts)
    local transport = opts.transport or "ring"
    local is_socket = transport == "socket"
    local is_poll = transport == "poll"
    return {
        transport = transport,
        name = "resty.events " .. opts.listening,
        unique_timeout = between(0.001, opts.unique_timeout or DEFAULT_UNIQUE_TIMEOUT, 86400),
        queue_len = between(1, opts.max_queue_len or DEFAULT_QUEUE, 10000000),
        max_payload_len = math.max(1, opts.max_payload_len or DEFAULT_PAYLOAD),
        listening = is_socket and opts.listening or nil,
        broker_id = is_socket and opts.broker_id or nil,
        shm = is_poll and opts.shm or nil,
        interval = is_poll and opts.interval or nil,
    }
end

return _M
