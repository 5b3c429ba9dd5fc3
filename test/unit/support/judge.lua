--- What plugins decide, without nginx (judge.h).

local abi = require("sluice.ffi.abi")
local core = require("test.unit.support.core")
local packed = require("sluice.ffi.packed")

abi.declare("core/plugin")

local ffi, lib = core.ffi, core.lib

local decisions = { [0] = "pass", "respond", "body", "unknown", "memory" }
local KEY = "right"

-- Whose callbacks and texts have to stay.
local credential = ffi.cast("sluice_judge_credential_pt", function(_, kind, key)
    assert(ffi.string(kind.data, kind.length) == "keyauth_credentials")
    local is_known = ffi.string(key.data, key.length) == KEY
    return is_known and lib.SLUICE_FACT_OK or lib.SLUICE_FACT_NONE
end)

-- What is asked for, by its name here.
local FACTS = {}
for name in
    ([[method scheme protocol host path query address server_name consumer username credential body
    target authenticated_groups]]):gmatch("%S+")
do
    FACTS[name] = lib["SLUICE_ASK_" .. name:upper()]
end

local function text_of(value)
    return ffi.new("sluice_core_text_t", value, #value)
end

local function string_of(text)
    return text.data ~= nil and ffi.string(text.data, text.length) or nil
end

local function texts_of(list)
    local texts = ffi.new("sluice_core_text_t[?]", #list + 1)
    for i, value in ipairs(list) do
        texts[i - 1] = text_of(value)
    end
    return texts
end

local function fact_of(value)
    if type(value) == "table" then
        local out = packed.new()
        out:list(value)
        value = out:bytes()
    end
    return value
end

--- A request of `given`: facts by name (a list: packed), `headers` as pairs, `acls`, the consumer's
-- groups; what is false is not there, what is not given is not known.
local function request_of(given, anchors)
    local request = ffi.new("sluice_judge_request_t")
    for i = 0, lib.SLUICE_ASK_COUNT - 1 do
        request.known[i] = lib.SLUICE_FACT_UNKNOWN
    end
    for name, ask in pairs(FACTS) do
        if given[name] then
            anchors[name] = fact_of(given[name])
            request.facts[ask] = text_of(anchors[name])
            request.known[ask] = lib.SLUICE_FACT_OK
        elseif given[name] == false then
            request.known[ask] = lib.SLUICE_FACT_NONE
        end
    end
    local headers, labels = given.headers or {}, {}
    for _, group in ipairs(given.acls or {}) do
        labels[#labels + 1] = "acls"
        labels[#labels + 1] = group
    end
    anchors[1], anchors[2] = texts_of(headers), texts_of(labels)
    request.headers, request.headers_count = anchors[1], #headers / 2
    request.headers_known = given.headers and lib.SLUICE_FACT_OK or lib.SLUICE_FACT_UNKNOWN
    request.labels, request.labels_count = anchors[2], #labels / 2
    request.labels_known = given.acls and lib.SLUICE_FACT_OK or lib.SLUICE_FACT_UNKNOWN
    request.credential = given.people and given.people.credential or credential
    request.consumer = given.people and given.people.consumer or nil
    request.digest = given.people and given.people.digest or nil
    request.now = given.now or 0
    request.own = given.own
    return request
end

local _M = { lib = lib }

local function lines_of(result, headers)
    for i = 0, result.lines_count - 1 do
        local line = result.lines[i]
        local header = ffi.string(line.header.name, line.header.length)
        headers[header] = string_of(line.value)
    end
end

local function challenge_of(result)
    for i = 0, result.edits_count - 1 do
        local edit = result.edits[i]
        if edit.verb == lib.SLUICE_DECISION_DOWN_CHALLENGE then
            return string_of(edit.value)
        end
    end
    return nil
end

local function username_of(result)
    local is_known = result.identity ~= lib.SLUICE_DECISION_NOBODY
    local name = is_known
        and lib.sluice_core_text(result.who.consumer, lib.SLUICE_CORE_CONSUMER_USERNAME)
    return name and string_of(name) or nil
end

--- Judges a request by a plugin with a configuration.
-- @tparam string name
-- @tparam table|string config what its pack() takes, or has written
-- @tparam table given of the request, as `request_of` takes it; `head`: of the response's head, too
-- @treturn string|nil the decision; nil: there is no judge
-- @treturn table `status`, `message`, `type`, `unknown`, `query`, `bound`, `challenge`, `headers`,
-- `logged`; with `people` (people.lua) the `username`
function _M.judge(name, config, given)
    local rc = ffi.new("int[1]")
    local bytes = type(config) == "string" and config
        or require("plugins." .. name .. ".handler").pack(config)
    local made = lib.sluice_judge_create(name, #name, text_of(bytes), rc)
    if made == nil then
        return nil, rc[0]
    end
    local anchors = {}
    local result = ffi.new("sluice_decision_result_t")
    local request = request_of(given, anchors)
    local decision = lib.sluice_judge_run(made, request, result)
    local out = {
        status = result.status,
        message = string_of(result.message),
        type = string_of(result.type),
        query = string_of(result.query),
        headers = {},
        logged = string_of(result.log_value),
        bound = result.bound.message.data ~= nil and tonumber(result.bound.size) or nil,
        unknown = result.unknown ~= nil and ffi.string(result.unknown) or nil,
        challenge = challenge_of(result),
        username = given.people and username_of(result),
    }
    lines_of(result, out.headers)
    if given.head and lib.sluice_judge_head(made, request, result) == lib.SLUICE_DECISION_PASS then
        lines_of(result, out.headers)
    end
    lib.sluice_judge_destroy(made)
    return decisions[decision], out
end

-- Compiled code cannot be called back.
jit.off(_M.judge)

return _M
