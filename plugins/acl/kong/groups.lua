--- The groups of consumers, as Kong's plugin acl has them: `kong.plugins.acl.groups`.
-- @module kong.plugins.acl.groups

local setmetatable = setmetatable
local type = type

local _M = {}

local NOTHING = require("kong.tools.table").EMPTY

local WEAK = { __mode = "k" }

-- rows -> names; names of a configuration -> groups of a consumer -> whether one is in both
local names_of, in_common = setmetatable({}, WEAK), setmetatable({}, WEAK)

local function kit()
    return rawget(_G, "kong")
end

local function load(consumer)
    local rows = {}
    for row, err in kit().db.acls:each_for_consumer(consumer) do
        if err then
            return nil, err
        end
        rows[#rows + 1] = row
    end
    return rows[1] and rows or NOTHING
end

local function rows_of(consumer_id)
    local kong = kit()
    local key = kong.db.acls:cache_key(consumer_id)
    return kong.cache:get(key, nil, load, { id = consumer_id })
end

--- The groups of a consumer: names, each also by itself. Yields where they are not kept yet.
-- @tparam string consumer_id
-- @treturn table|nil nil: it has none
-- @treturn string|nil error
-- @phases access
function _M.get_consumer_groups(consumer_id)
    local rows, err = rows_of(consumer_id)
    if err then
        return nil, err
    elseif not rows or #rows == 0 then
        return nil
    end
    local names = names_of[rows]
    if not names then
        names = {}
        for i, row in ipairs(rows) do
            names[i], names[row.group] = row.group, row.group
        end
        names_of[rows] = names
    end
    return names
end

--- Loads the groups of a consumer.
-- @tparam string consumer_id
-- @treturn nil
-- @treturn string|nil error
-- @phases access, timer
function _M.warmup_groups_cache(consumer_id)
    local _, err = rows_of(consumer_id)
    return nil, err
end

--- Whether one of some groups is among others.
-- @tparam {string,...} groups_to_check
-- @tparam table groups each by its name
-- @treturn boolean|nil
-- @phases any
function _M.group_in_groups(groups_to_check, groups)
    for _, name in ipairs(groups_to_check) do
        if groups[name] then
            return true
        end
    end
    return nil
end

--- The same, remembered for these two tables as long as they live.
-- @tparam {string,...} groups_to_check
-- @tparam table consumer_groups of `get_consumer_groups`
-- @treturn boolean
-- @phases any
function _M.consumer_in_groups(groups_to_check, consumer_groups)
    local known = in_common[groups_to_check] or setmetatable({}, WEAK)
    in_common[groups_to_check] = known
    if known[consumer_groups] == nil then
        known[consumer_groups] = _M.group_in_groups(groups_to_check, consumer_groups) or false
    end
    return known[consumer_groups]
end

--- Who the request comes from.
-- @treturn string|nil id of a consumer
-- @phases access, header_filter, body_filter, log
function _M.get_current_consumer_id()
    local client = kit().client
    local consumer, credential = client.get_consumer(), client.get_credential()
    return consumer and consumer.id or credential and credential.consumer_id
end

--- The groups that an authentication plugin has found: names, each also by itself.
-- @treturn table|nil
-- @phases access, header_filter, body_filter, log
function _M.get_authenticated_groups()
    local found = kit().ctx.shared.authenticated_groups
    if type(found) ~= "table" then
        found = ngx.ctx.authenticated_groups
        if found ~= nil and type(found) ~= "table" then
            kit().log.warn("invalid authenticated_groups, a table was expected")
            found = nil
        end
    end
    local groups = found and {}
    for i, name in ipairs(found or NOTHING) do
        groups[i], groups[name] = name, name
    end
    return groups
end

return _M
