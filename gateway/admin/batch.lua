--- `POST /batch`: many writes of entities, all of them made or none.
-- @module gateway.admin.batch

local body = require("gateway.admin.body")
local garbage_collector = require("sluice.garbage_collector")
local json = require("gateway.schema.json")
local paths = require("gateway.admin.path")
local redact = require("sluice.redact")
local response = require("gateway.admin.response")
local text = require("gateway.schema.text")
local views = require("gateway.admin.views")
local writes = require("gateway.admin.writes")

local format = string.format

-- Operations, and bytes of all.
local MAX_OPERATIONS = 1000
local MAX_BYTES = 16 * 1024 * 1024

-- What an operation may have, and of which type.
local FIELDS = { method = "string", path = "string", body = "table" }
local WORDS = { string = "a string", table = "an object" }

local QUOTES = 2

-- Bytes of a method or path that a refusal quotes.
local MAX_QUOTED = 300

local _M = {}

local function wrong(message, ...)
    return nil, { status = 400, message = format(message, ...) }
end

--- The operation that is meant.
-- @treturn table|nil of gateway.change.run
-- @treturn nil|table refusal
local function read(sent)
    if type(sent) ~= "table" or sent[1] ~= nil then
        return wrong("expected an object")
    end
    for name, value in pairs(sent) do
        if not FIELDS[name] then
            return wrong("%s: unknown field", name)
        elseif type(value) ~= FIELDS[name] or (name == "body" and value[1] ~= nil) then
            return wrong("%s: expected %s", name, WORDS[FIELDS[name]])
        end
    end
    if not sent.method or not sent.path then
        return wrong("%s: required field missing", sent.method and "path" or "method")
    end
    local segments = sent.path:find("^/[^?#]+$") and paths.split(sent.path)
    if not segments then
        return wrong("path: expected one such as /services/orders")
    end
    local operation, allowed = writes.operation(sent.method, segments)
    if operation then
        operation.value = sent.body
        return operation
    elseif allowed then
        return nil, { status = 405, message = "Method not allowed" }
    end
    return nil, { status = 404, message = "Not found" }
end

-- What is left of so many bytes behind a value's JSON, which has these at least; below 0: it has
-- more, and is not looked through.
local function take_bytes(value, left, pause)
    if type(value) ~= "table" then
        return left - (type(value) == "string" and #value + QUOTES or 1)
    end
    pause()
    for key, item in pairs(value) do
        left = left - (type(key) == "string" and #key + QUOTES or 0) - 1
        left = left >= 0 and take_bytes(item, left, pause) or left
        if left < 0 then
            break
        end
    end
    return left
end

local function read_all(list)
    local operations, pause = {}, garbage_collector.turns()
    for i, sent in ipairs(list) do
        -- To check an entity takes no turns.
        if take_bytes(sent, body.MAX_BYTES, pause) < 0 then
            local message = "the operation is larger than %d bytes"
            return nil, { status = 413, message = format(message, body.MAX_BYTES) }, i
        end
        local operation, refusal = read(sent)
        if not operation then
            return nil, refusal, i
        end
        operations[i] = operation
    end
    return operations
end

local function answer(live, done)
    local results, pause = json.array({}), garbage_collector.turns()
    for i, result in ipairs(done.results) do
        pause()
        local entity = result.entity
        results[i] = {
            status = result.status,
            body = entity and views.to_json(live, result.kind, entity) or nil,
        }
    end
    return response.json(200, results)
end

-- What a refusal says of the operation that is to blame.
local function blame(list, at)
    local sent = list[at]
    local blamed = { operation = at - 1 }
    if type(sent) == "table" then
        local method, path = sent.method, sent.path
        blamed.method = type(method) == "string" and text.shorten(method, MAX_QUOTED) or nil
        blamed.path = type(path) == "string" and text.shorten(redact.uri(path), MAX_QUOTED) or nil
    end
    return blamed
end

--- Answers the request. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @phases content
function _M.post(live, args)
    local wrong_argument = writes.check_arguments(args)
    if wrong_argument then
        return writes.refuse(live, wrong_argument)
    end
    local sent, refusal = body.read(MAX_BYTES)
    if not sent then
        return writes.refuse(live, refusal)
    end
    local list = sent.value
    if sent.is_form or (next(list) ~= nil and list[1] == nil) then
        return response.json(400, { message = "expected an array of operations as JSON" })
    elseif #list > MAX_OPERATIONS then
        local message = "more than %d operations"
        return response.json(413, { message = message:format(MAX_OPERATIONS) })
    end
    local operations, at
    operations, refusal, at = read_all(list)
    if not operations then
        return writes.refuse(live, refusal, blame(list, at))
    end
    return writes.run(live, operations, sent.size, function(done)
        return answer(live, done)
    end, function(place)
        return blame(list, place)
    end)
end

return _M
