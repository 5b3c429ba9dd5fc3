--- The OpenAPI 3.1 document of the admin listener: of the schemas of entities and plugins
-- (gateway.schema.json_schema), their paths (gateway.admin.collections), and pages beside
-- them (gateway.admin.pages). `make docs` writes docs/openapi.json.
-- @module gateway.admin.openapi

local collections = require("gateway.admin.collections")
local entities = require("gateway.entities")
local json = require("gateway.schema.json")
local json_schema = require("gateway.schema.json_schema")
local pages = require("gateway.admin.pages")
local schema = require("gateway.schema")
local version = require("gateway.version")

local format = string.format

local FORMS = { "application/json", "application/x-www-form-urlencoded", "multipart/form-data" }

-- Status -> name and description of an answer that is an error.
local ERRORS = {
    ["400"] = { "Invalid", "The request is not valid; see `fields`." },
    ["401"] = { "Unauthorized", "The token is missing or wrong." },
    ["403"] = { "Forbidden", "Request from a web page of another site." },
    ["404"] = { "NotFound", "Not found." },
    ["405"] = { "NotAllowed", "The method is not allowed, or the instance is read-only." },
    ["409"] = { "Conflict", "Another entity has this id or unique value." },
    ["413"] = { "TooLarge", "The body is too large." },
    ["415"] = { "UnknownMediaType", "The body is of another media type." },
    ["421"] = { "Misdirected", "Unknown Host." },
    ["503"] = { "NotReady", "The control worker or the store is not ready." },
    ["507"] = { "Full", "Not enough disk space or memory." },
}

local EVERYWHERE = { "400", "401", "403", "421", "503" }
local READING = { "404" }
local WRITING = { "404", "405", "409", "413", "415", "507" }

local LIST_ARGUMENTS = {
    size = { type = "integer", minimum = 1, maximum = 1000, default = 100 },
    offset = { type = "string", description = "`offset` of the previous page." },
    tags = {
        type = "string",
        minLength = 1,
        description = "`a,b`: all of these tags; `a/b`: any of them.",
    },
}

local OF_WRITES = {
    dry_run = pages["/batch"].POST.arguments.dry_run,
    sync = { type = "string", enum = { "0", "1" }, description = "Changes nothing." },
}

-- What gateway.plan has, and the revision that was made of it.
local NUMBER, NAME = { type = "integer" }, { type = { "string", "null" } }
local OWNER = { type = "object", properties = { kind = { type = "string" }, name = NAME } }
local PLAN = {
    type = "object",
    description = "What a write changes, or would.",
    properties = {
        created = NUMBER,
        changed = NUMBER,
        deleted = NUMBER,
        unchanged = NUMBER,
        revision = { type = { "integer", "null" }, description = "Null with `dry_run`." },
        warnings = { type = "array", items = { type = "string" } },
        entities = {
            type = "array",
            items = {
                type = "object",
                properties = {
                    kind = { type = "string" },
                    name = NAME,
                    id = { type = "string", format = "uuid" },
                    change = { enum = { "created", "changed", "deleted", "unchanged" } },
                    owners = { type = "array", items = OWNER },
                    fields = { type = "array", items = { type = "object" } },
                },
                required = { "kind", "name", "id", "change", "owners" },
            },
        },
    },
    required = { "created", "changed", "deleted", "revision", "entities" },
}

local _M = {}

local function ref(part, name)
    return { ["$ref"] = "#/components/" .. part .. "/" .. name }
end

-- Of the parts in braces, then of the query.
local function parameters(path, arguments)
    local list = {}
    for name in path:gmatch("{([^}]+)}") do
        list[#list + 1] = {
            name = name,
            ["in"] = "path",
            required = true,
            schema = { type = "string", minLength = 1 },
        }
    end
    for _, name in ipairs(schema.sorted_keys(arguments or {})) do
        list[#list + 1] = { name = name, ["in"] = "query", schema = arguments[name] }
    end
    return #list > 0 and list or nil
end

local function add_errors(responses, statuses)
    for _, status in ipairs(statuses) do
        responses[status] = ref("responses", ERRORS[status][1])
    end
end

local function answer(description, media_type, value)
    return {
        description = description,
        headers = { ["Sluice-Revision"] = ref("headers", "Revision") },
        content = value and { [media_type] = { schema = value } },
    }
end

-- The other answer of a write, with `?dry_run=1`.
local function add_plan(responses)
    local plan, done = ref("schemas", "plan"), responses["200"]
    local value = done and done.content["application/json"].schema
    if not value then
        value = plan
    elseif value["$ref"] ~= plan["$ref"] then
        value = { anyOf = { value, plan } }
    end
    local description = done and done.description or "With `dry_run`: what would change"
    responses["200"] = answer(description, "application/json", value)
end

local function operation(of)
    local responses = {}
    responses[of.status] = answer(of.summary, "application/json", of.answer)
    if of.arguments and of.arguments.dry_run then
        add_plan(responses)
    end
    add_errors(responses, EVERYWHERE)
    add_errors(responses, of.errors)
    return {
        summary = of.summary,
        operationId = of.id,
        tags = { of.tag },
        parameters = parameters(of.path, of.arguments),
        requestBody = of.body and { required = false, content = of.body } or nil,
        responses = responses,
    }
end

-- Entities ---------------------------------------------------------------------------------------

-- The schemas of a kind: one, or for plugins one for each.
local function variants(kind, registry)
    if kind ~= "plugins" then
        return { { definition = entities.get(kind) } }
    end
    local list = {}
    for i, plugin in ipairs(registry:list()) do
        list[i] = { name = plugin.name, definition = entities.for_plugin(plugin) }
    end
    return list
end

-- Puts a component there unless it is there, and refers to it.
local function component(state, name, make)
    if not state.schemas[name] then
        state.schemas[name] = true
        local all = {}
        for i, variant in ipairs(variants(make.kind, state.registry)) do
            local made = make.of(variant.definition)
            if variant.name then
                made.properties.name = { const = variant.name }
                local full = name .. "-" .. variant.name
                state.schemas[full] = made
                made = ref("schemas", full)
            end
            all[i] = made
        end
        local is_one = make.kind ~= "plugins"
        local meaning = entities.get(make.kind).description
        state.schemas[name] = is_one and all[1] or { anyOf = all, description = meaning }
    end
    return ref("schemas", name)
end

local function shown(state, kind)
    return component(state, kind, { kind = kind, of = json_schema.answer })
end

-- What may be left out is in the path: the name, the parent.
local function sent(state, of, method)
    local given, name = {}, of.kind .. "-" .. method:lower()
    local definition = entities.get(of.kind)
    if method == "PATCH" then
        given["*"] = true
    elseif method == "PUT" then
        given[definition.endpoint_key or ""] = true
    end
    local owner = of.parent and schema.field(definition, of.parent.field)
    if owner and owner.required and method ~= "PATCH" then
        given[of.parent.field] = true
        name = name .. "-of-" .. of.parent.kind
    end
    local made = component(state, name, {
        kind = of.kind,
        of = function(variant)
            return json_schema.body(variant, given)
        end,
    })
    local content = {}
    for _, media_type in ipairs(FORMS) do
        content[media_type] = { schema = made }
    end
    return content
end

local METHODS = {
    POST = { status = "201", summary = "Adds one" },
    PUT = { status = "200", summary = "Creates or replaces one" },
    PATCH = { status = "200", summary = "Updates one; omitted fields are kept" },
    DELETE = { status = "204", summary = "Deletes one, if it exists" },
}

local function page_of(entity)
    return {
        type = "object",
        properties = {
            data = { type = "array", items = entity },
            next = { type = { "string", "null" } },
            offset = { type = "string", description = "For the next page; absent on the last." },
        },
        required = { "data", "next" },
    }
end

local function operation_id(method, path)
    return method:lower() .. path:gsub("[^%w]+", "-"):gsub("%-$", "")
end

local function list_arguments(kind)
    local arguments = {}
    for name, argument in pairs(LIST_ARGUMENTS) do
        arguments[name] = argument
    end
    for _, name in ipairs(entities.unique_fields(kind)) do
        arguments[name] = { type = "string", minLength = 1, description = "The one that has it." }
    end
    return arguments
end

local function add_reading(state, item, of)
    local entity = shown(state, of.kind)
    item.get = operation({
        id = operation_id("GET", of.path),
        tag = of.kind,
        path = of.path,
        summary = of.is_one and "One of them" or "A page of all",
        arguments = not of.is_one and list_arguments(of.kind) or nil,
        status = "200",
        answer = of.is_one and entity or page_of(entity),
        errors = (of.is_one or of.parent) and READING or {},
    })
end

local function add_writing(state, item, of, method)
    local is_deletion = method == "DELETE"
    item[method:lower()] = operation({
        id = operation_id(method, of.path),
        tag = of.kind,
        path = of.path,
        summary = METHODS[method].summary,
        arguments = OF_WRITES,
        body = not is_deletion and sent(state, of, method) or nil,
        status = METHODS[method].status,
        answer = not is_deletion and shown(state, of.kind) or nil,
        errors = WRITING,
    })
end

local function methods_of(of)
    if of.by then
        return { "PUT", "PATCH" }
    end
    return of.is_one and { "PUT", "PATCH", "DELETE" } or { "POST" }
end

local function entity_paths(state, paths)
    for _, of in ipairs(collections.list()) do
        local item = {}
        add_reading(state, item, of)
        for _, method in ipairs(methods_of(of)) do
            add_writing(state, item, of, method)
        end
        paths[of.path] = item
    end
end

-- Pages ------------------------------------------------------------------------------------------

local function page_operation(path, method, page)
    local content
    for media_type, value in pairs(page.body or {}) do
        content = content or {}
        content[media_type] = { schema = value }
    end
    local is_named = path:find("{", 1, true) ~= nil
    local status = format("%d", page.status or 200)
    local made = operation({
        id = operation_id(method, path == "/" and "/node" or path),
        tag = page.kind or "node",
        path = path,
        summary = page.summary,
        arguments = page.arguments,
        body = content,
        status = status,
        answer = page.answer,
        errors = content and { "413", "415", "507" } or {},
    })
    add_errors(made.responses, page.errors or {})
    add_errors(made.responses, is_named and READING or {})
    if page.is_text then
        made.responses[status] = answer(page.summary, "text/plain", { type = "string" })
    end
    for _, more in ipairs(page.more or {}) do
        made.responses[more] = { description = "Already live." }
    end
    return made
end

local function page_paths(paths)
    for path, methods in pairs(pages) do
        paths[path] = paths[path] or {}
        for method, page in pairs(methods) do
            paths[path][method:lower()] = page_operation(path, method, page)
        end
    end
end

local function tags()
    local list = {}
    for _, kind in ipairs(entities.kinds) do
        local definition = entities.get(kind)
        if definition.generate_admin_api ~= false then
            list[#list + 1] = { name = kind, description = definition.description }
        end
    end
    return list
end

local function error_responses()
    local responses = {}
    for _, it in pairs(ERRORS) do
        local content = { ["application/json"] = { schema = ref("schemas", "error") } }
        responses[it[1]] = { description = it[2], content = content }
    end
    return responses
end

--- Makes the document: some 10 ms, and does not yield.
-- @tparam table registry of plugins
-- @treturn table for gateway.schema.json
-- @phases any
function _M.document(registry)
    local state, paths = { registry = registry, schemas = {} }, {}
    entity_paths(state, paths)
    page_paths(paths)
    state.schemas.plan = PLAN
    state.schemas.error = {
        type = "object",
        properties = {
            message = { type = "string" },
            name = { type = "string" },
            code = { type = "integer" },
            fields = { type = "object" },
        },
        required = { "message" },
    }
    return {
        openapi = "3.1.0",
        info = {
            title = "Sluice Admin API",
            version = version.product,
            license = { name = "Apache 2.0", identifier = "Apache-2.0" },
        },
        servers = { { url = "http://127.0.0.1:8001" } },
        security = { {}, { token = json.array({}) }, { bearer = json.array({}) } },
        tags = tags(),
        paths = paths,
        components = {
            schemas = state.schemas,
            responses = error_responses(),
            headers = {
                Revision = {
                    description = "Revision of the store that the response contains at least.",
                    schema = { type = "integer", minimum = 0 },
                },
            },
            securitySchemes = {
                token = { type = "apiKey", ["in"] = "header", name = "Kong-Admin-Token" },
                bearer = { type = "http", scheme = "bearer" },
            },
        },
    }
end

return _M
