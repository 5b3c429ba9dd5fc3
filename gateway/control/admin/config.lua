--- Declarative files: `POST /config` replaces the whole configuration by one, `POST /apply` makes
-- or changes the entities of one and leaves the others.
-- @module gateway.control.admin.config

local body = require("gateway.control.admin.body")
local response = require("gateway.control.admin.response")
local caller = require("gateway.control.admin.caller")
local collect = require("gateway.config.collect")
local config = require("gateway.config")
local document = require("gateway.config.document")
local editing = require("gateway.control.editing")
local entities = require("gateway.entities")
local flattened = require("gateway.control.admin.flattened")
local garbage_collector = require("gateway.control.garbage_collector")
local json = require("gateway.control.admin.json")
local refusals = require("gateway.control.refusals")

local ngx = ngx

-- Media type -> kind of the text; false: to be told by the text itself.
local KINDS = {
    ["application/json"] = "json",
    ["application/yaml"] = "yaml",
    ["application/x-yaml"] = "yaml",
    ["text/yaml"] = "yaml",
    ["text/x-yaml"] = "yaml",
    ["text/plain"] = false,
}

-- Kong's number and name for a file that is not right.
local INVALID, INVALID_NAME = 14, "invalid declarative configuration"

-- Arguments of the query.
local SWITCHES = { "check_hash", "dry_run", "flatten_errors", "wait" }

local _M = {}

-- `curl --data-binary @file` calls any text a form.
local function from_form(text)
    local value = text:match("^config=([^&]*)") or text:match("&config=([^&]*)")
    return value and ngx.unescape_uri(value) or text
end

--- A JSON object may hold the text in its field `config`, as Kong's clients send it.
local function from_json(text)
    local head = text:sub(1, 64)
    local wrapped = head:find('^%s*{%s*"config"%s*:%s*"') and document.decode(text, "json")
    if wrapped and type(wrapped.config) == "string" then
        return wrapped.config, nil
    end
    return text, "json"
end

--- Reads the declarative file out of the request. Yields.
-- @treturn string|nil its text; nil when the media type is unknown
-- @treturn string|nil "json" or "yaml", nil: to be told by the text
local function read_text()
    local media_type, header = body.media_type()
    media_type = media_type or "text/plain"
    if media_type == "multipart/form-data" then
        local fields = body.form(body.text(), media_type, header)
        return fields and fields.values.config and fields.values.config[1]
    elseif media_type == "application/x-www-form-urlencoded" then
        return from_form(body.text())
    elseif media_type == "application/json" then
        return from_json(body.text())
    elseif KINDS[media_type] == nil then
        return nil
    end
    return body.text(), KINDS[media_type] or nil
end

local function refuse(errors, flattens)
    local fields, list = {}, json.array({})
    local by_entity, others = nil, errors
    if flattens then
        by_entity, others = flattened.of(errors)
    end
    for _, err in ipairs(others) do
        fields[err.path == "" and "@document" or err.path] = err.message
    end
    for i, err in ipairs(errors) do
        list[i] = {
            path = err.path,
            message = err.message,
            entity = err.entity,
            line = err.line,
        }
    end
    local more = #errors > 1 and (" (and %d more)"):format(#errors - 1) or ""
    return response.json(400, {
        message = "declarative config is invalid: " .. config.format_error(errors[1]) .. more,
        name = INVALID_NAME,
        code = INVALID,
        fields = fields,
        errors = list,
        flattened_errors = by_entity,
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

-- The file of the request, or its refusal is sent: of its arguments too, where `message` says what
-- is wrong with them. Yields.
local function read_file(message)
    if message then
        response.json(400, { message = message })
        return nil
    end
    local text, kind = read_text()
    if not text then
        response.json(415, { message = "expected a declarative file as JSON, YAML or form" })
    end
    return text, kind
end

-- What could not be checked.
local function refuse_file(word, why, args)
    if word == "invalid" then
        return refuse(why, args.flatten_errors == "1")
    end
    return response.json(refusals.status(word), { message = why, name = word })
end

-- The items of gateway.config.collect as operations, in an order in which those that others refer
-- to come first.
local function operations_of(state, pause)
    local operations, by_item = {}, {}
    for _, kind in ipairs(entities.kinds) do
        for _, item in ipairs(state.items[kind]) do
            local parent = item.parent
                and { field = item.parent_field, operation = by_item[item.parent] }
            local operation = {
                method = "UPSERT",
                kind = kind,
                value = item.entity,
                parent = parent,
                item = item,
            }
            operations[#operations + 1] = operation
            by_item[item] = operation
            pause()
        end
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
    local text, kind = read_file(message)
    if not text then
        return
    end
    local state, word, why = live.configuration:collect(text, kind, list_of)
    if not state then
        return refuse_file(word, why, args)
    end
    local pause = garbage_collector.turns()
    local operations = operations_of(state, pause)
    local done, refusal, at =
        editing.run(live, operations, #text, caller.describe(), args.dry_run == "1")
    if done then
        return answer_applied(done, operations, args.dry_run == "1", pause)
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
    local text, kind = read_file(check_switches(args))
    if not text then
        return
    end
    if args.check_hash == "1" and live.configuration:origin(text) == live.state().origin then
        return response.not_modified()
    end
    local begun = ngx.now()
    local result, word, why = live.configuration:replace(text, kind, caller.describe())
    if not result then
        return refuse_file(word, why, args)
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
