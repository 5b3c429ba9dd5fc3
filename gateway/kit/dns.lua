--- `kong.dns`: the addresses of names, as the gateway resolves those of services.
-- @module gateway.kit.dns

local pdk = require("gateway.pdk")

local type = type

local _M = {}

_M.TYPE_A, _M.TYPE_AAAA = 1, 28
local CLASS_IN = 1
-- As long as the gateway keeps them.
local TTL_SECONDS = 30

-- Which of a name's addresses comes next, by name; forgotten all at once.
local turns, count = {}, 0
local MAX_NAMES = 1000

local function next_turn(name)
    if not turns[name] then
        if count >= MAX_NAMES then
            turns, count = {}, 0
        end
        count = count + 1
    end
    turns[name] = (turns[name] or -1) + 1
    return turns[name]
end

local function lookup(name)
    if type(name) ~= "string" or name == "" then
        return nil, "dns client error: 101 empty record received"
    end
    local addresses, err = pdk.resolve(name)
    if not addresses then
        return nil, "dns client error: " .. tostring(err)
    end
    return addresses
end

--- The records of a name. Yields.
-- @tparam string name
-- @treturn table|nil a list of `{ name =, address =, type =, class =, ttl = }`, IPv6 in brackets
-- @treturn string|nil error
-- @phases certificate, access, timer
function _M.resolve(name)
    local addresses, err = lookup(name)
    if not addresses then
        return nil, err
    end
    local records = {}
    for i, address in ipairs(addresses) do
        records[i] = {
            name = name,
            address = address,
            type = address:find(":", 1, true) and _M.TYPE_AAAA or _M.TYPE_A,
            class = CLASS_IN,
            ttl = TTL_SECONDS,
        }
    end
    return records
end

--- An address of a name; of several each has its turn. Yields.
-- @tparam string name
-- @tparam[opt] number port is given back
-- @treturn string|nil IPv6 in brackets
-- @treturn number|string|nil the port; or the error
-- @phases certificate, access, timer
function _M.toip(name, port)
    local addresses, err = lookup(name)
    if not addresses then
        return nil, err
    end
    return addresses[next_turn(name) % #addresses + 1], port
end

--- Figures: there are none.
-- @treturn table
-- @phases any
function _M.stats()
    return {}
end

return _M
