--- `/history`: who changed what, and `POST /rollback`, the way back.
-- @module gateway.control.admin.history

local body = require("gateway.control.admin.body")
local caller = require("gateway.control.admin.caller")
local json = require("gateway.control.admin.json")
local paging = require("gateway.control.admin.paging")
local response = require("gateway.control.admin.response")
local rollback = require("gateway.control.rollback")

local ipairs = ipairs
local pairs = pairs
local tonumber = tonumber
local tostring = tostring
local type = type

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

local MESSAGES = {
    changed = "others changed entities meanwhile, again and again",
    ["not found"] = "there is no such revision",
    ["too old"] = "the history does not reach back to this revision",
}

local _M = {}

local function refuse(err)
    local message = MESSAGES[err.err] or err.message or err.err
    return response.json(STATUS[err.err] or 500, { message = message, name = err.err })
end

local function described(entry)
    return {
        revision = entry.revision,
        at = entry.at,
        by = entry.by or json.null,
        created = entry.created,
        changed = entry.changed,
        deleted = entry.deleted,
        kinds = json.array(entry.kinds),
    }
end

--- Answers a page of the history, the newest first. Yields.
-- @tparam table live what `gateway.control.admin` is given
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
    for i, entry in ipairs(page) do
        data[i] = described(entry)
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

--- Goes back to a revision, and answers with that which this has made. Yields.
-- @phases content
function _M.rollback()
    local revision, refusal = read_revision()
    if not revision then
        return response.json(refusal.status, { message = refusal.message })
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
