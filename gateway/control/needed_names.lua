--- The names that changes begin to need, so that they come into the store with them.
-- @module gateway.control.needed_names

local addresses = require("gateway.control.addresses")
local apply = require("gateway.control.apply")
local entity_text = require("gateway.store.entity_text")
local items = require("gateway.config.items")

local ipairs = ipairs

-- How long a new name's addresses are waited for.
local NAME_SECONDS = 2

local _M = {}

-- What changes make of upstreams: their ids, and the names that they have afterwards.
local function upstreams_of(changes, pause)
    local found = { ids = {}, names = {}, read = {} }
    for _, change in ipairs(changes) do
        if change.kind == "upstreams" then
            found.ids[change.id] = true
            if change.entity then
                found.names[change.entity.name] = true
            end
        end
        pause()
    end
    return found
end

-- The name of an upstream that it has no more: services with this host are to have addresses.
local function lost_name(change)
    local row = change.kind == "upstreams" and apply.read("get", "upstreams", change.id)
    local name = row and row.id == change.id and entity_text.decode(row.text).name
    return name and not (change.entity and change.entity.name == name) and name or nil
end

-- Whether a service's host is an upstream. What was read for that is kept.
local function is_upstream(upstreams, name)
    if upstreams.names[name] == nil then
        local row = apply.read("get", "upstreams", name)
        local is_it = row ~= nil and row.id ~= name and not upstreams.ids[row.id]
        upstreams.read[#upstreams.read + 1] = is_it and row or nil
        upstreams.names[name] = is_it
    end
    return upstreams.names[name]
end

--- The entities of names that changes begin to need, with addresses where the resolver has them
-- within two seconds. Yields.
-- @tparam {table,...} changes `{ kind =, id =, entity = nil where it is deleted }`
-- @tparam function pause called for each of them, may yield
-- @treturn {table,...} of the kind `names`, to be put where the store has none
-- @treturn {table,...} rows of upstreams that stand for their names: each has to be there still
-- when the changes are made
-- @phases content, timer
function _M.of(changes, pause)
    local upstreams, found = upstreams_of(changes, pause), {}
    local asked, lost, seen = {}, {}, {}
    for _, change in ipairs(changes) do
        local host = change.entity and items.name_of(change.kind, change.entity)
        local name = host or lost_name(change)
        if name and not seen[name] then
            local known = addresses.remembered(name)
            local is_needed = known or change.kind ~= "services" or not is_upstream(upstreams, name)
            local list = known and found or host and asked or lost
            list[#list + 1] = is_needed and (known or name) or nil
            seen[name] = is_needed
        end
        pause()
    end
    for _, entity in ipairs(addresses.of(asked, NAME_SECONDS)) do
        found[#found + 1] = entity
    end
    -- Services seldom have such a host: nobody waits.
    for _, entity in ipairs(addresses.of(lost, 0)) do
        found[#found + 1] = entity
    end
    return found, upstreams.read
end

return _M
