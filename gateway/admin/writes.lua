--- What pages that write entities have in common: which operation a request is, what was sent with
-- it, and how it is run or refused.
-- @module gateway.admin.writes

local body = require("gateway.admin.body")
local caller = require("gateway.admin.caller")
local collections = require("gateway.admin.collections")
local dry_run = require("gateway.admin.dry_run")
local json = require("gateway.schema.json")
local refusals = require("gateway.change.refusals")
local response = require("gateway.admin.response")
local runs = require("gateway.change.run")
local sources = require("gateway.plan.sources")

local _M = {}

-- Methods of a collection, and of one entity.
local OF_ALL = "GET, HEAD, OPTIONS, POST"
local OF_ONE = "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"
--- Methods of what an entity refers to.
_M.OF_REFERENCE = "GET, HEAD, OPTIONS, PUT, PATCH"
local WRITES = { DELETE = true, PATCH = true, POST = true, PUT = true }

--- The operation of gateway.change.run that a method on a path is.
-- @tparam string method
-- @tparam table segments of the path, unescaped
-- @treturn table|nil without its value; nil where the path leads to nothing
-- @treturn nil|string methods that the path has, as in an Allow header, where it has not this one
-- @phases any
function _M.operation(method, segments)
    local found = collections.find(segments)
    if not found then
        return nil
    end
    if found.by then
        return nil, _M.OF_REFERENCE
    end
    local methods = found.key and OF_ONE or OF_ALL
    if not WRITES[method] or not methods:find(method, 1, true) then
        return nil, methods
    end
    found.method = method
    return found
end

--- What is wrong with the arguments of a write: `sync`, which Kong's clients and ours may say.
-- @tparam table args arguments of the query
-- @treturn table|nil refusal
-- @phases any
function _M.check_arguments(args)
    local sync = args.sync
    if sync ~= nil and sync ~= "0" and sync ~= "1" then
        return { status = 400, message = "sync must be 0 or 1, given once" }
    end
    return nil
end

--- Reads what a write has sent. Yields.
-- @tparam table args arguments of the query
-- @treturn table|nil `{ value = table, is_form =, size = }` of gateway.admin.body
-- @treturn nil|table refusal
-- @phases content
function _M.read_sent(args)
    local wrong_argument = _M.check_arguments(args)
    if wrong_argument then
        return nil, wrong_argument
    end
    local sent, refusal = body.read(body.MAX_BYTES)
    if sent and sent.value[1] ~= nil then
        local message = "Cannot parse JSON body (expected an object)"
        return nil, { status = 400, message = message }
    end
    return sent, refusal
end

--- Answers with a refusal of gateway.change.run.
-- @tparam table live what `gateway.admin` is given
-- @tparam table refusal
-- @tparam[opt] table blamed which of several operations is to blame: `operation`, its place from 0;
-- `method` and `path`
-- @phases content
function _M.refuse(live, refusal, blamed)
    blamed = blamed or {}
    return response.json(refusal.status, {
        message = refusal.message,
        name = refusal.name,
        code = refusal.code,
        fields = refusal.fields,
        operation = blamed.operation,
        method = blamed.method,
        path = blamed.path,
        state = refusal.name == "not ready" and live.state().state or nil,
    })
end

-- Answers with what would change.
local function answer_plan(live, done)
    local store = sources.of_reader(live.read)
    local plan, err = sources.changes(store, live.plugins, done.changes, done.gone)
    if not plan then
        return _M.refuse(live, refusals.of(err))
    end
    local answer = plan:result()
    answer.revision = json.null
    return response.json(200, answer)
end

--- Runs operations, and answers; the answer gets the revision of what they have made. With
-- `?dry_run=1` it is what they would change. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam {table,...} operations of gateway.change.run
-- @tparam number size bytes that they came in
-- @tparam function answer `(done)`, with what gateway.change.run gives
-- @tparam[opt] function blame `(at)`: of the operation that is to blame, what `refuse` takes
-- @phases content
function _M.run(live, operations, size, answer, blame)
    local done, refusal, at =
        runs.run(live, operations, size, caller.describe(), dry_run.is_asked())
    if not done then
        return _M.refuse(live, refusal, at and blame and blame(at))
    end
    response.set_revision(done.revision)
    if dry_run.is_asked() then
        return answer_plan(live, done)
    end
    return answer(done)
end

return _M
