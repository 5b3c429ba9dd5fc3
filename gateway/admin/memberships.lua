--- Who is in which group: `/consumer_groups/{g}`, `/consumer_groups/{g}/consumers` and
-- `/consumers/{c}/consumer_groups`, in Kong's layout. Clients see consumers and groups, not the
-- memberships between them.
-- @module gateway.admin.memberships

local entity_text = require("gateway.store.entity_text")
local json = require("gateway.schema.json")
local paging = require("gateway.admin.paging")
local refusals = require("gateway.change.refusals")
local response = require("gateway.admin.response")
local views = require("gateway.admin.views")
local writes = require("gateway.admin.writes")

local KIND = "consumer_group_consumers"
-- One request joins as many at most.
local MAX_JOINED = 1000
-- Of a page: clients of Kong's that know no pages here read one.
local SIZE = 1000

-- Kind in the path -> the field of a membership that refers to it; the kind of those on the other
-- side, and the name by which a body has them.
local SIDES = {
    consumer_groups = { field = "consumer_group", others = "consumers", sent = "consumer" },
    consumers = { field = "consumer", others = "consumer_groups", sent = "group" },
}

local LISTS_CONSUMERS = { ["true"] = true, ["false"] = false }

local _M = {}

-- What stands on the other side of a membership; nil where it was deleted meanwhile.
local function other_of(live, side, membership)
    local id = membership[SIDES[side.others].field].id
    local row = live.read("get", side.others, id)
    return row and views.to_json(live, side.others, entity_text.decode(row.text))
end

local function others_of(live, side, memberships)
    local list = json.array({})
    for _, membership in ipairs(memberships) do
        list[#list + 1] = other_of(live, side, membership)
    end
    return list
end

local function refuse_read(err)
    if err.err == "not found" then
        return response.not_found()
    end
    return paging.unreadable(err)
end

local function plugins_of(live, id)
    local list = json.array({})
    for i, plugin in ipairs(views.find_all(live, "plugins", "consumer_group", id)) do
        list[i] = views.to_json(live, "plugins", plugin)
    end
    return list
end

-- The group or consumer of the path, with those on the other side of some memberships, or of all;
-- false: without.
local function show(live, status, segments, memberships)
    local kind = segments[1]
    local side = SIDES[kind]
    local row, err = live.read("get", kind, segments[2])
    if not row then
        return refuse_read(err)
    end
    if memberships == nil then
        memberships = views.find_all(live, KIND, side.field, row.id)
    end
    return response.json(status, {
        [side.field] = views.to_json(live, kind, entity_text.decode(row.text)),
        [side.others] = memberships and others_of(live, side, memberships) or nil,
        plugins = kind == "consumer_groups" and plugins_of(live, row.id) or nil,
    })
end

--- Answers with a group, its consumers and its plugins; `?list_consumers=false`: without consumers.
-- Yields; one read for each consumer.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.get(live, args, segments)
    local wanted = LISTS_CONSUMERS[args.list_consumers or "true"]
    if wanted == nil then
        return response.json(400, { message = "list_consumers must be true or false, given once" })
    end
    if wanted then
        return show(live, 200, segments)
    end
    return show(live, 200, segments, false)
end

--- Answers with a page of those on the other side. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.list(live, args, segments)
    local side = SIDES[segments[1]]
    local row, err = live.read("get", segments[1], segments[2])
    if not row then
        return refuse_read(err)
    end
    local path = ("/%s/%s/%s"):format(segments[1], ngx.escape_uri(row.id), side.others)
    return views.list(live, KIND, args, path, { [side.field] = row.id }, {
        size = SIZE,
        show = function(membership)
            return other_of(live, side, membership)
        end,
    })
end

local function operation(method, segments)
    return {
        method = method,
        kind = KIND,
        key = segments[4],
        parent = { kind = segments[1], key = segments[2], field = SIDES[segments[1]].field },
    }
end

-- One operation for each that is named.
local function read_joined(segments, value)
    local side = SIDES[segments[1]]
    for name in pairs(value) do
        if name ~= side.sent then
            return nil, refusals.invalid_field(name, "unknown field")
        end
    end
    local named = value[side.sent]
    if named == nil or named == json.null then
        return nil, refusals.invalid_field(side.sent, "required field missing")
    end
    local list = type(named) == "table" and named[1] ~= nil and named or { named }
    if #list > MAX_JOINED then
        local message = ("expected at most %d"):format(MAX_JOINED)
        return nil, refusals.invalid_field(side.sent, message)
    end
    local operations = {}
    for i, reference in ipairs(list) do
        operations[i] = operation("POST", segments)
        operations[i].value = { [SIDES[side.others].field] = reference }
    end
    return operations
end

--- Joins the group or consumer of the path with those that the body names, all or none, and answers
-- with these: whoever fills a large group one by one is not sent all of it each time. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.post(live, args, segments)
    local sent, operations, refusal
    sent, refusal = writes.read_sent(args)
    if sent then
        operations, refusal = read_joined(segments, sent.value)
    end
    if not operations then
        return writes.refuse(live, refusal)
    end
    return writes.run(live, operations, sent.size, function(done)
        local joined = {}
        for i, result in ipairs(done.results) do
            joined[i] = result.entity
        end
        return show(live, 201, segments, joined)
    end)
end

--- Parts the group or consumer of the path from one, or from all. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.delete(live, args, segments)
    local refusal = writes.check_arguments(args)
    if refusal then
        return writes.refuse(live, refusal)
    end
    return writes.run(live, { operation("DELETE", segments) }, 0, response.no_content)
end

return _M
