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
    ([[method scheme protocol host path query address server_name service consumer username
    credential body target authenticated_groups]]):gmatch("%S+")
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
-- groups; what is false is not there, what is not given is not known. `later`: the body is not
-- read.
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
    if given.later then
        request.known[lib.SLUICE_ASK_BODY] = lib.SLUICE_FACT_LATER
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

local function lines_of(result, lines, headers)
    for i = 0, result.lines_count - 1 do
        local line = result.lines[i]
        local header = ffi.string(line.header.name, line.header.length)
        local value = ffi.string(line.value.data, line.value.length)
        lines[#lines + 1] = { header, value }
        headers[header] = value
    end
    return lines
end

local VERBS = {}
for verb in ("UP_SET UP_ADD UP_REMOVE UP_REMOVE_ALIKE DOWN_ADD DOWN_REMOVE"):gmatch("%S+") do
    VERBS[lib["SLUICE_DECISION_" .. verb]] = verb
end

--- Changes of headers, in their order; the challenge stands for itself.
local function edits_of(result)
    local edits, challenge = {}, nil
    for i = 0, result.edits_count - 1 do
        local edit = result.edits[i]
        if edit.verb == lib.SLUICE_DECISION_DOWN_CHALLENGE then
            challenge = string_of(edit.value)
        else
            local name = ffi.string(edit.header.name, edit.header.length)
            edits[#edits + 1] = { assert(VERBS[edit.verb]), name, string_of(edit.value) or "" }
        end
    end
    return edits, challenge
end

local function slot_of(found)
    local head = ffi.new("sluice_core_entity_t")
    lib.sluice_core_head(found, head)
    return head.slot
end

--- Who it comes from: the consumer's name, the slot of the credential, what stands for its id.
local function identity_of(result)
    if result.identity == lib.SLUICE_DECISION_NOBODY then
        return nil
    end
    local name = lib.sluice_core_text(result.who.consumer, lib.SLUICE_CORE_CONSUMER_USERNAME)
    local is_anonymous = result.identity == lib.SLUICE_DECISION_ANONYMOUS
    return {
        username = string_of(name),
        credential = not is_anonymous and slot_of(result.who.credential) or nil,
        identifier = string_of(result.identifier),
    }
end

-- Where a plugin gives none it is the status's.
local function message_of(result)
    if result.message.data == nil and result.status ~= 0 then
        local words = ffi.new("sluice_core_text_t")
        local buffer = ffi.new("char[64]") -- SLUICE_ANSWER_WORDS
        lib.sluice_answer_words(result.status, buffer, words)
        return string_of(words)
    end
    return string_of(result.message)
end

local function sample_of(result)
    local sample = result.sample
    return sample.is_set ~= 0 and { share = sample.share, errors = sample.errors } or nil
end

--- Judges a request by a plugin with a configuration.
-- @tparam string name
-- @tparam table|string config what its pack() takes, or has written
-- @tparam table given of the request, as `request_of` takes it; `head`: of the response's head, too
-- @treturn string|nil the decision; nil: there is no judge
-- @treturn table `status`, `message`, `type`, `unknown`, `query`, `body`, `bound`, `bound_status`,
-- `bound_message`, `challenge`, `headers` (by name), `lines` and `edits` (in their order), of the
-- head `head_lines` and `head_edits`, `log_name`, `logged`, `sample`; with `people` (people.lua)
-- `identity`
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
    local edits, challenge = edits_of(result)
    local is_bound = result.bound.message.data ~= nil
    local out = {
        status = result.status,
        message = message_of(result),
        type = string_of(result.type),
        query = string_of(result.query),
        body = string_of(result.body),
        headers = {},
        edits = edits,
        log_name = string_of(result.log_name),
        logged = string_of(result.log_value),
        bound = is_bound and tonumber(result.bound.size) or nil,
        bound_status = is_bound and result.bound.status or nil,
        bound_message = is_bound and string_of(result.bound.message) or nil,
        sample = sample_of(result),
        unknown = result.unknown ~= nil and ffi.string(result.unknown) or nil,
        challenge = challenge,
        identity = given.people and identity_of(result) or nil,
    }
    out.lines = lines_of(result, {}, out.headers)
    if given.head and lib.sluice_judge_head(made, request, result) == lib.SLUICE_DECISION_PASS then
        out.head_edits = edits_of(result)
        out.head_lines = lines_of(result, {}, out.headers)
    end
    lib.sluice_judge_destroy(made)
    return decisions[decision], out
end

-- Compiled code cannot be called back.
jit.off(_M.judge)

return _M
