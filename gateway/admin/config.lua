--- Declarative files: `POST /config` replaces the whole configuration by one, `POST /apply` makes
-- or changes the entities of one and leaves the others.
-- @module gateway.admin.config

local body = require("gateway.admin.body")
local response = require("gateway.admin.response")
local caller = require("gateway.admin.caller")
local client = require("gateway.change.client")
local collect = require("gateway.config.collect")
local config = require("gateway.config")
local dry_run = require("gateway.admin.dry_run")
local entities = require("gateway.entities")
local garbage_collector = require("sluice.garbage_collector")
local entity_text = require("gateway.store.entity_text")
local json = require("gateway.schema.json")
local kind_names = require("gateway.config.kind_names")
local plans = require("gateway.plan")
local refusals = require("gateway.change.refusals")
local runs = require("gateway.change.run")

-- Kong's number and name for a file that is not right.
local INVALID, INVALID_NAME = 14, "invalid declarative configuration"

-- Arguments of the query.
local SWITCHES = { "check_hash", "flatten_errors", "wait" }

local _M = {}

local function refuse(found)
    local fields, list = {}, json.array({})
    for i, err in ipairs(found.errors) do
        list[i] = {
            path = err.path,
            message = err.message,
            entity = err.entity,
            line = err.line,
            column = err.column,
            excerpt = err.excerpt,
            hint = err.hint and err.hint:match("^; (.*)"),
        }
    end
    for _, i in ipairs(found.others) do
        local err = found.errors[i]
        local place = err.column and ("line %d, column %d: "):format(err.line, err.column) or ""
        fields[err.path == "" and "@document" or err.path] = place .. err.message
    end
    local more = found.count > 1 and (" (and %d more)"):format(found.count - 1) or ""
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

-- The entities that operations have made, by id, or those of the store.
local function finder(live, operations, results)
    local made = {}
    for i, operation in ipairs(operations) do
        made[operation.id] = results[i].entity
    end
    return function(kind, id)
        local row = not made[id] and live.read("get", kind, id)
        return made[id] or (row and row.id == id and entity_text.decode(row.text)) or nil
    end
end

local function answer_applied(live, done, operations, warnings, pause)
    local plan = plans.new(live.plugins, finder(live, operations, done.results))
    for i, operation in ipairs(operations) do
        local entity = done.results[i].entity
        local after = entity_text.decode(entity_text.encode(entity))
        local before = operation.before and entity_text.decode(operation.before)
        if before and entity.__undated.created_at then
            after.created_at = before.created_at
        end
        plan:add(operation.kind, before, after, operation.change == "unchanged")
        pause()
    end
    response.set_revision(done.revision)
    local answer = plan:result()
    answer.revision = not dry_run.is_asked() and done.revision or json.null
    answer.warnings = #warnings > 0 and json.array(warnings) or nil
    return response.json(200, answer)
end

-- The kind that the query names; nil and what to answer where it is none.
local function kind_of(text)
    if type(text) ~= "string" then
        return nil, { message = "kind must be given once" }
    end
    local kind, near = kind_names.read(text)
    local known = near and "did you mean %s?" or "expected one of entities, such as %s"
    local line = "unknown kind '%s'; " .. known
    local message = line:format(text, entities.path_name(near or "services"))
    return kind, not kind and { name = "unknown kind", message = message } or nil
end

--- Makes or changes the entities of a file, all of them or none, and leaves others alone: 200 with
-- what has become of each. With `?dry_run=1` says what would. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query: `kind`: of a list in place of a file
-- @phases content
function _M.apply(live, args)
    local message, list_of, unknown = check_switches(args), nil, nil
    if args.kind ~= nil then
        list_of, unknown = kind_of(args.kind)
    end
    if message or unknown then
        return response.json(400, unknown or { message = message })
    end
    local items, size, warnings = live.configuration:collect(body.source(), list_of)
    if not items then
        return refuse_file(size)
    end
    local pause = garbage_collector.turns()
    local operations = operations_of(items, pause)
    local done, refusal, at =
        runs.run(live, operations, size, caller.describe(), dry_run.is_asked(), client.is_gone)
    if done then
        return answer_applied(live, done, operations, warnings, pause)
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
        entity = blamed and plans.name_of(blamed.kind, blamed.value),
        state = refusal.name == "not ready" and live.state().state or nil,
    })
end

local function answer_plan(live, sent, args)
    local plan, refusal = live.configuration:plan(sent, args.flatten_errors == "1")
    if not plan then
        return refuse_file(refusal)
    end
    return response.json_text(200, plan:sub(1, -2) .. ',"revision":null}')
end

--- Answers the request: 201 when every worker serves it; 304 with `?check_hash=1` when it is live
-- already; 200 and what would change with `?dry_run=1`. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @phases content
function _M.post(live, args)
    local message = check_switches(args)
    if message then
        return response.json(400, { message = message })
    end
    local sent, begun = body.source(), ngx.now()
    if dry_run.is_asked() then
        return answer_plan(live, sent, args)
    end
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
        -- The clock has whole milliseconds, their difference has not.
        ms = math.floor((ngx.now() - begun) * 1000 + 0.5),
    })
end

return _M
