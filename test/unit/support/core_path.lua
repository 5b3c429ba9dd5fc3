--- The C core's paths with the interface of `test.unit.support.lua_path`, so that the same cases
-- ask both.

local core = require("test.unit.support.core")

local ffi, lib = core.ffi, core.lib

local STRIP, V1, TRAVERSAL, ARGS = 0x01, 0x02, 0x04, 0x08

-- Longer than any case's bound.
local SIZE = 64 * 1024
local GUARD = 0xa5

local text_t = ffi.typeof("sluice_core_text_t")

local buffer = ffi.new("uint8_t[?]", SIZE)
local small = ffi.new("uint8_t[1]")

-- Of the request that is asked about.
local request = ffi.new("sluice_path_request_t")
local raw, path, result, refused = text_t(), text_t(), text_t(), text_t()

local _M = { own = "the request's own", refuse = "refuse" }

local function set_text(text, value)
    text.data, text.length = value, value and #value or 0
end

--- Asks with just as much room as the bound says, and with less.
-- @treturn string|nil what was written; nil: nothing was, the input goes on
-- @treturn string the core's word
local function write(verb, bound, input, input_data)
    bound = tonumber(bound)
    assert(bound < SIZE, "a case longer than the buffer")
    buffer[bound] = GUARD
    local rc = verb(input, buffer, bound, result)
    assert(buffer[bound] == GUARD, "written beyond the bound")
    if rc == 0 and result.data == input_data then
        assert(verb(input, nil, 0, refused) == 0, "room was asked for where nothing is written")
        return nil, "ok"
    end
    small[0] = GUARD
    local full = bound == 0 or verb(input, small, bound - 1, refused) == lib.SLUICE_CORE_FULL
    assert(full and small[0] == GUARD, "written with too little room")
    if rc ~= 0 then
        return nil, ffi.string(lib.sluice_core_word(rc))
    end
    return ffi.string(result.data, result.length), "ok"
end

--- @treturn string
-- @treturn boolean whether it is the input, not a copy
function _M.normalize(given)
    set_text(raw, given)
    local bound = lib.sluice_path_normalize_bound(raw)
    local written = write(lib.sluice_path_normalize, bound, raw, raw.data)
    return written or given, written == nil
end

--- @treturn string
-- @treturn boolean whether it is the input, not a copy
function _M.escape(given)
    set_text(path, given)
    local bound = lib.sluice_path_escape_bound(path)
    local written = write(lib.sluice_path_escape, bound, path, path.data)
    return written or given, written == nil
end

local function set_route(route, base, prefix)
    set_text(request.base, base)
    request.prefix = prefix and #prefix or -1
    request.flags = (route.strip_path and STRIP or 0) + (route.path_handling == "v1" and V1 or 0)
end

function _M.upstream(route, base, normal, prefix, is_raw)
    set_route(route, base, prefix)
    set_text(request.raw, is_raw and normal or nil)
    set_text(request.path, normal)
    set_text(request.query, "")
    local bound = lib.sluice_path_upstream_bound(request)
    local written, word = write(lib.sluice_path_upstream, bound, request, request.raw.data)
    assert(word == "ok", word)
    return written or normal
end

--- All that is decided of a request's URI.
-- @tparam table asked `target`; `prefix`: text or nil; `route`; `base`: text or nil; `args`: text,
-- or nil where plugins have not run; `passes_traversal`
-- @treturn string URI, `own` or `refuse`
-- @treturn string|nil X-Forwarded-Prefix
function _M.decide(asked)
    local target = text_t(asked.target, #asked.target)
    lib.sluice_path_split(target, request.raw, request.query)
    local memory = ffi.new("uint8_t[?]", lib.sluice_path_normalize_bound(request.raw))
    local size = ffi.sizeof(memory)
    assert(lib.sluice_path_normalize(request.raw, memory, size, request.path) == 0)
    set_route(asked.route, asked.base, asked.prefix)
    set_text(request.args, asked.args)
    request.flags = request.flags
        + (asked.args and ARGS or 0)
        + (asked.passes_traversal and TRAVERSAL or 0)

    local bound = lib.sluice_path_upstream_bound(request)
    local uri, word = write(lib.sluice_path_upstream, bound, request, request.raw.data)
    if word == "traversal" then
        return _M.refuse
    end
    assert(word == "ok", word)
    if not uri then
        assert(ffi.string(result.data, result.length) == asked.target, "not the request's own")
        uri = _M.own
    end

    bound = lib.sluice_path_escape_bound(text_t(nil, math.max(request.prefix, 0)))
    local prefix = write(lib.sluice_path_stripped, bound, request, request.path.data)
    prefix = prefix or ffi.string(result.data, result.length)
    return uri, prefix ~= "" and prefix or nil
end

--- @treturn boolean whether an upstream may leave the first bytes of a path
function _M.leaves(uri_path, base_length)
    return lib.sluice_traversal_leaves(uri_path, #uri_path, base_length) ~= 0
end

return _M
