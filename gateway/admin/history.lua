--- `/history`: who changed what, and `POST /rollback`, the way back.
-- @module gateway.admin.history

local body = require("gateway.admin.body")
local caller = require("gateway.admin.caller")
local dry_run = require("gateway.admin.dry_run")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local json = require("gateway.schema.json")
local paging = require("gateway.admin.paging")
local plans = require("gateway.plan")
local response = require("gateway.admin.response")
local rollback = require("gateway.change.rollback")
local sources = require("gateway.plan.sources")

-- Bytes of a body: a number.
local MAX_BYTES = 4096
local MAX_REVISION = 2 ^ 53

-- Status of what cannot be done; 500 else.
local STATUS = {
    changed = 503,
    full = 507,
    ["no memory"] = 507,
    ["not found"] = 404,
    ["not ready"] = 503,
    ["reference missing"] = 409,
    referenced = 409,
    ["too old"] = 409,
    ["unique violation"] = 409,
}

local MESSAGES = { changed = "too many concurrent changes; try again" }

local _M = {}

local function refuse(err)
    local message = MESSAGES[err.err] or err.message or err.err
    return response.json(STATUS[err.err] or 500, { message = message, name = err.err })
end

local function to_json(made)
    local named = json.array({})
    for i, each in ipairs(made.named) do
        local entity = each.text and entity_text.decode(each.text) or {}
        named[i] = {
            kind = entities.path_name(each.kind),
            name = plans.name_of(each.kind, entity) or json.null,
            id = each.id,
            change = each.what,
        }
    end
    return {
        revision = made.revision,
        at = made.at,
        by = made.by or json.null,
        created = made.created,
        changed = made.changed,
        deleted = made.deleted,
        kinds = json.array(made.kinds),
        entities = named,
    }
end

--- Answers a page of the history, the newest first. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query: size, offset
-- @phases content
function _M.get(live, args)
    local options, name, code, message = paging.read(args)
    if not options then
        return response.bad_request(name, code, message)
    end
    local page, offset = live.read("changes_made", options)
    if not page then
        return paging.refuse(offset, options)
    end
    local data = json.array({})
    for i, made in ipairs(page) do
        data[i] = to_json(made)
    end
    return paging.answer("/history", args, data, offset)
end

-- What the body asks for; nil and why it cannot be.
local function read_revision()
    local sent, refusal = body.read(MAX_BYTES)
    if not sent then
        return nil, refusal
    end
    for name in pairs(sent.value) do
        if name ~= "revision" then
            return nil, { status = 400, message = tostring(name) .. ": unknown field" }
        end
    end
    local revision = sent.value.revision
    if sent.is_form then
        revision = tostring(revision):find("^%d+$") and tonumber(revision)
    end
    local is_number = type(revision) == "number" and revision % 1 == 0
    if not is_number or revision < 0 or revision > MAX_REVISION then
        local message = "revision: expected the number of one of /history, or of before the first"
        return nil, { status = 400, message = message }
    end
    return revision
end

-- What going back would change.
local function answer_plan(live, revision)
    local plan, err = sources.rollback(sources.of_reader(live.read), live.plugins, revision)
    if not plan then
        return refuse(err)
    end
    local answer = plan:result()
    answer.revision = json.null
    return response.json(200, answer)
end

--- Goes back to a revision, and answers with that which this has made; with `?dry_run=1` with what
-- it would change. Yields.
-- @tparam table live what `gateway.admin` is given
-- @phases content
function _M.rollback(live)
    local revision, refusal = read_revision()
    if not revision then
        return response.json(refusal.status, { message = refusal.message })
    end
    if dry_run.is_asked() then
        return answer_plan(live, revision)
    end
    local by = ("%s, back to %d"):format(caller.describe(), revision)
    local done, err = rollback.run(revision, by)
    if not done then
        return refuse(err)
    end
    response.set_revision(done.revision)
    return response.json(200, { revision = done.revision, changes = done.changes })
end

return _M
