--- `GET /config`: the whole configuration as a declarative file in YAML, as Kong answers it where
-- it has no database.
-- @module gateway.admin.config_file

local caller = require("gateway.admin.caller")
local client = require("gateway.change.client")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local garbage_collector = require("sluice.garbage_collector")
local json = require("gateway.schema.json")
local lifetime = require("gateway.schema.lifetime")
local refusals = require("gateway.change.refusals")
local response = require("gateway.admin.response")
local schema = require("gateway.schema")
local yaml_text = require("gateway.config.yaml_text")

-- Entities that are read and written at a time.
local PIECE = 100
-- How often it is read anew that has changed meanwhile.
local TRIES = 5

local NEEDS_NO_DATABASE = "this endpoint is only available when Kong is configured to not use a "
    .. "database; here POST replaces all entities of the store"
local HEAD = '_format_version: "3.0"\n_transform: false\n'

local _M = {}

-- An entity as such a file has it: with nulls, and what it refers to by id.
local function as_file(live, kind, text)
    local entity = entity_text.decode(text)
    lifetime.show(entity, ngx.time())
    local definition = entities.definition(kind, entity, live.plugins)
    local shown = schema.to_json_entity(definition, entity, caller.hides_secrets(), true)
    for _, field in ipairs(entities.foreign(kind)) do
        local reference = shown[field.name]
        shown[field.name] = type(reference) == "table" and reference.id or reference
    end
    return shown
end

-- Adds the entities of a kind, as pieces of a text in JSON, until the client has left.
local function add_kind(live, kind, pieces, pause)
    local offset, is_first = nil, true
    repeat
        local rows, next_offset = live.read("list", kind, { size = PIECE, offset = offset })
        local list = {}
        for i, row in ipairs(rows or {}) do
            list[i] = as_file(live, kind, row.text)
        end
        if #list > 0 then
            local text = yaml_text.of_json(json.encode({ [kind] = list }, pause))
            -- The name of the kind stands there once.
            text = is_first and text or text:gsub("^[^\n]*\n", "", 1)
            pieces[#pieces + 1] = json.encode(text):sub(2, -2)
            is_first = false
            pause()
        end
        offset = rows and next_offset
    until not offset or client.is_gone()
end

local function revision_of(live)
    return (live.read("revision") or {}).revision
end

-- All entities of one revision; nil where each try has met a change, or the client has left.
local function read_all(live)
    local pause = garbage_collector.turns()
    for _ = 1, TRIES do
        local revision = revision_of(live)
        local pieces = { '{"config":"', (json.encode(HEAD):sub(2, -2)) }
        for _, kind in ipairs(entities.kinds) do
            add_kind(live, kind, pieces, pause)
        end
        if client.is_gone() then
            return nil
        elseif revision and revision_of(live) == revision then
            pieces[#pieces + 1] = '"}'
            return pieces, revision
        end
    end
    return nil
end

--- Answers the request: 400 where the store is written by entity, 503 where it changes all the
-- time. Secrets are shown as anywhere else (gateway.admin.caller). Yields.
-- @tparam table live what `gateway.admin` is given
-- @phases content
function _M.get(live)
    if live.is_writable then
        return response.json(400, { message = NEEDS_NO_DATABASE })
    end
    local pieces, revision = read_all(live)
    if not pieces and client.is_gone() then
        return ngx.exit(refusals.CLIENT_LEFT.status)
    elseif not pieces then
        return response.json(503, { message = "the configuration has changed while it was read" })
    end
    response.set_revision(revision)
    response.begin(200)
    ngx.print(pieces)
end

return _M
