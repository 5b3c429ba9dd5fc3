--- `/schemas/...`: the schemas of entities and plugins in Kong's layout, and values to check.
-- @module gateway.admin.schemas

local body = require("gateway.admin.body")
local entities = require("gateway.entities")
local json = require("gateway.schema.json")
local references = require("gateway.config.references")
local refusals = require("gateway.change.refusals")
local response = require("gateway.admin.response")
local schema = require("gateway.schema")
local texts = require("gateway.schema.texts")
local typedefs = require("gateway.schema.typedefs")
local vaults = require("gateway.change.vaults")

-- Of what /tags lists, which is no kind of entity.
local TAGS = {
    fields = {
        { tag = typedefs.tag({ description = "The tag." }) },
        {
            entity_name = {
                type = "string",
                required = true,
                description = "Kind of the entity that has the tag.",
            },
        },
        {
            entity_id = typedefs.uuid({
                required = true,
                description = "Id of the entity that has the tag.",
            }),
        },
    },
}

local LISTS = { array = true, set = true }

local _M = {}

-- What JSON can say of a part of a schema: all but functions.
local function plain(value)
    if type(value) ~= "table" then
        return value
    end
    local out = {}
    for key, item in pairs(value) do
        if type(item) ~= "function" then
            out[key] = plain(item)
        end
    end
    if LISTS[value.type] and type(out.default) == "table" then
        json.array(out.default)
    end
    return out
end

local function show(definition)
    local shorthands = definition.shorthand_fields
    return response.json(200, {
        fields = json.array(plain(definition.fields)),
        entity_checks = json.array(plain(definition.entity_checks or {})),
        shorthand_fields = shorthands and json.array(plain(shorthands)),
    })
end

local function unknown(what, name)
    return response.json(404, { message = ("No %s named '%s'"):format(what, name) })
end

--- `/schemas/{kind}`.
-- @tparam table _ what `gateway.admin` is given
-- @tparam table _ arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.get(_, _, segments)
    local definition = segments[2] == "tags" and TAGS or entities.get(segments[2])
    return definition and show(definition) or unknown("entity", segments[2])
end

--- `/schemas/plugins/{name}`.
-- @tparam table live what `gateway.admin` is given
-- @tparam table _ arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.get_plugin(live, _, segments)
    local plugin = live.plugins:get(segments[3])
    return plugin and show(plugin.schema) or unknown("plugin", segments[3])
end

--- `/schemas/vaults/{name}`: what is particular to a kind of vault.
-- @tparam table _ what `gateway.admin` is given
-- @tparam table _ arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.get_vault(_, _, segments)
    if segments[3] ~= "env" then
        return unknown("vault", segments[3])
    end
    local config = schema.field(entities.get("vaults"), "config")
    return show({ fields = { { config = config } } })
end

local function refuse(refusal)
    return response.json(refusal.status, {
        message = refusal.message,
        name = refusal.name,
        code = refusal.code,
        fields = refusal.fields,
    })
end

--- `POST /schemas/{kind}/validate`. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table _ arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.validate(live, _, segments)
    local kind = segments[2]
    if not entities.get(kind) then
        return unknown("entity", kind)
    end
    local sent, refusal = body.read(body.MAX_BYTES)
    if not sent then
        return refuse(refusal)
    end
    local value = sent.value
    local definition, name = entities.definition(kind, value, live.plugins)
    if name then
        return refuse(refusals.invalid_field("name", ("plugin '%s' not installed"):format(name)))
    end
    value = sent.is_form and texts.typed(definition, value) or value
    local vault = references.with(live.vault, vaults.finder_in_store(live.read))
    local checked, errors = schema.validate(definition, value, "", vault)
    if not checked then
        return refuse(refusals.invalid(errors))
    end
    return response.json(200, { message = "schema validation successful" })
end

return _M
