--- Declarative files: `POST /config` replaces the whole configuration by one, `POST /apply` makes
-- or changes the entities of one and leaves the others.
-- @module gateway.control.admin.config

local body = require("gateway.control.admin.body")
local response = require("gateway.control.admin.response")
local caller = require("gateway.control.admin.caller")
local client = require("gateway.control.client")
local collect = require("gateway.config.collect")
local config = require("gateway.config")
local editing = require("gateway.control.editing")
local entities = require("gateway.entities")
local garbage_collector = require("gateway.control.garbage_collector")
local json = require("gateway.control.admin.json")
local refusals = require("gateway.control.refusals")

local ngx = ngx

-- Kong's number and name for a file that is not right.
local INVALID, INVALID_NAME = 14, "invalid declarative configuration"

-- Arguments of the query.
local SWITCHES = { "check_hash", "dry_run", "flatten_errors", "wait" }

local _M = {}

local function refuse(found)
    local fields, list = {}, json.array({})
    for i, err in ipairs(found.errors) do
        list[i] = {
            path = err.path,
            message = err.message,
            entity = err.entity,
            line = err.line,
        }
    end
    for _, i in ipairs(found.others) do
        local err = found.errors[i]
        fields[err.path == "" and "@document" or err.path] = err.message
    end
    local more = #list > 1 and (" (and %d more)"):format(#list - 1) or ""
    local first = config.format_error(found.errors[1])
    return response.json(400, {
        message = "declarative config is invalid: " .. first .. more,
        name = INVALID_NAME,
        code = INVALID,
        fields = fields,
        errors = list,
        flattened_errors = found.flattened and json.array(found.flattened),
    })
end

-- What is wrong with the arguments of the query; nil where nothing is.
local function check_switches(args)
    for _, name in ipairs(SWITCHES) do
        local value = args[name]
        if value ~= nil and value ~= "0" and value ~= "1" then
            return name .. " must be 0 or 1, given once"
        end
    end
    return nil
end

-- Answers where nothing was made of a file.
local function refuse_file(found)
    local word = found.word
    if word == "invalid" then
        return refuse(found)
    elseif word == "media type" then
        local message = "expected a declarative file as JSON, YAML or form"
        return response.json(415, { message = message })
    elseif word == "same" then
        return response.not_modified()
    elseif word == "stopped" then
        return ngx.exit(refusals.CLIENT_LEFT.status)
    end
    return response.json(refusals.status(word), { message = found.message, name = word })
end

-- The items of gateway.config.collect as operations, in an order in which those that others refer
-- to come first.
local function operations_of(items, pause)
    local operations, by_item = {}, {}
    for i, item in ipairs(items) do
        local parent = item.parent
            and { field = item.parent_field, operation = by_item[item.parent] }
        local operation = {
            method = "UPSERT",
            kind = item.kind,
            value = item.entity,
            parent = parent,
            item = item,
        }
        operations[i] = operation
        by_item[item] = operation
        pause()
    end
    return operations
end

-- What an entity is known by, and is no secret.
local function name_of(kind, entity)
    local definition = entities.get(kind)
    local name = not definition.has_secret_name and entity[definition.endpoint_key]
    return name or (kind == "plugins" and entity.name) or nil
end

local function answer_applied(done, operations, is_trial, pause)
    local counts, list = { created = 0, changed = 0, unchanged = 0 }, json.array({})
    for i, operation in ipairs(operations) do
        local kind, change = operation.kind, operation.change
        counts[change] = counts[change] + 1
        list[i] = {
            kind = entities.path_name(kind),
            name = name_of(kind, operation.value) or json.null,
            id = operation.id,
            change = change,
        }
        pause()
    end
    response.set_revision(done.revision)
    counts.entities = list
    counts.revision = not is_trial and done.revision or json.null
    return response.json(200, counts)
end

--- Makes or changes the entities of a file, all of them or none, and leaves others alone: 200 with
-- what has become of each. With `?dry_run=1` says what would. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam table args arguments of the query: `dry_run`; `kind`: of a list in place of a file
-- @phases content
function _M.apply(live, args)
    local message, list_of = check_switches(args), args.kind
    for _, kind in ipairs(entities.kinds) do
        list_of = entities.path_name(kind) == list_of and kind or list_of
    end
    if list_of ~= nil and not (type(list_of) == "string" and entities.get(list_of)) then
        message = "kind must be one of entities, such as services, given once"
    end
    if message then
        return response.json(400, { message = message })
    end
    local items, size = live.configuration:collect(body.source(), list_of)
    if not items then
        return refuse_file(size)
    end
    local pause = garbage_collector.turns()
    local operations = operations_of(items, pause)
    local done, refusal, at =
        editing.run(live, operations, size, caller.describe(), args.dry_run == "1", client.is_gone)
    if done then
        return answer_applied(done, operations, args.dry_run == "1", pause)
    end
    if refusal == refusals.CLIENT_LEFT then
        return ngx.exit(refusal.status)
    end
    local blamed = operations[at]
    return response.json(refusal.status, {
        message = refusal.message,
        name = refusal.name,
        code = refusal.code,
        fields = refusal.fields,
        path = blamed and collect.path(blamed.item),
        entity = blamed and name_of(blamed.kind, blamed.value),
        state = refusal.name == "not ready" and live.state().state or nil,
    })
end

--- Answers the request: 201 when every worker serves it; 304 with `?check_hash=1` when it is live
-- already. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam table args arguments of the query
-- @phases content
function _M.post(live, args)
    local message = check_switches(args)
    if message then
        return response.json(400, { message = message })
    end
    local sent, begun = body.source(), ngx.now()
    local result, refusal = live.configuration:replace(sent, {
        by = caller.describe(),
        flattens = args.flatten_errors == "1",
        is_checked = args.check_hash == "1",
    })
    if not result then
        return refuse_file(refusal)
    end
    ngx.update_time()
    response.set_revision(result.revision)
    return response.json(201, {
        version = result.revision,
        store = result.uuid,
        hash = result.hash,
        workers = #live.workers(),
        ms = (ngx.now() - begun) * 1000,
    })
end

return _M
