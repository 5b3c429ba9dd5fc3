--- Names to addresses while the gateway runs: the system's resolver, in a thread, remembered.
-- @module gateway.control.names

local address = require("sluice.address")

local ngx = ngx

-- How long addresses are good, and how long an old one serves where no new one is to be had.
local FRESH_SECONDS = 30

-- Names to remember; beyond, all are forgotten.
local MAX_NAMES = 1000

local _M = {}

-- name -> {addresses, time}
local known, count = {}, 0

--- Asks for names, in a thread where there are any: the resolver blocks. Yields.
-- @tparam {string,...} names
-- @treturn table name -> array of addresses (IPv6 in brackets), or why there is none
-- @phases access, content, timers
function _M.ask(names)
    if #names == 0 then
        return {}
    end
    local ok, found =
        ngx.run_worker_thread("sluice_dns", "gateway.control.resolver", "resolve_all", names)
    if not ok then
        error("the thread for names: " .. tostring(found))
    end
    return found
end

--- The addresses of one host, at most 30 seconds old unless the resolver fails. Yields.
-- @tparam string host name or address
-- @treturn {string,...}|nil addresses, IPv6 in brackets
-- @treturn string|nil the resolver's reason
-- @phases access, content, timers
function _M.resolve(host)
    local literal = address.literal(host)
    if literal then
        return { literal }
    end
    local found = known[host]
    local now = ngx.now()
    if found and now < found.time + FRESH_SECONDS then
        return found.addresses
    end
    local addresses = _M.ask({ host })[host]
    if type(addresses) == "table" then
        if not found then
            if count >= MAX_NAMES then
                known, count = {}, 0
            end
            count = count + 1
        end
        known[host] = { addresses = addresses, time = now }
        return addresses
    elseif found then
        return found.addresses
    end
    return nil, addresses
end

return _M
