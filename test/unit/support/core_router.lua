--- The router in C, asked with Lua tables.

local core = require("test.unit.support.core")
local regex = require("test.unit.support.regex")

local ffi, lib = core.ffi, core.lib

local NEEDS = { host = 0x01, port = 0x02, method = 0x04, headers = 0x08 }

local _M = {}
local methods = {}
local mt = { __index = methods }

local regexes = lib.sluice_core_regexes_create(2 ^ 24)

-- Of the request that is being matched.
local get_header, kept

local header = ffi.cast("sluice_core_header_pt", function(_, name, length, index, value)
    local found = get_header(ffi.string(name, length))
    local line = found and found.lines[index + 1]
    if line == nil then
        return 0
    end
    kept[#kept + 1] = line
    value.data, value.length = line, #line
    return 1
end)

local function set_text(text, value)
    if value then
        text.data, text.length = value, #value
    end
end

--- Asks a view.
-- @tparam[opt] table tls `sni`: name, nil without one; nil: a request without TLS
-- @treturn string the core's word
-- @treturn cdata match
function _M.ask(view, method, host, port, path, get, tls)
    local request = ffi.new("sluice_core_request_t")
    local match = ffi.new("sluice_core_match_t")
    set_text(request.method, method)
    set_text(request.host, host)
    set_text(request.path, path)
    request.port = port or -1
    request.header = header
    request.is_tls = tls and 1 or 0
    set_text(request.sni, tls and tls.sni)
    get_header, kept = get, {}
    local rc = lib.sluice_core_match(view, request, regexes, match)
    return ffi.string(lib.sluice_core_word(rc)), match
end

-- A callback may not come from compiled code.
jit.off(_M.ask)

--- Asks a view with the lines of all headers in an array, as a caller without a callback does.
-- @tparam cdata view
-- @tparam table request `headers`: lower-case name -> value or array of values
-- @treturn string the core's word
-- @treturn cdata match
function _M.ask_with_lines(view, request)
    local lines = {}
    for name, sent in pairs(request.headers) do
        for _, value in ipairs(type(sent) == "table" and sent or { sent }) do
            lines[#lines + 1], lines[#lines + 2] = name, value
        end
    end
    local texts = ffi.new("sluice_core_text_t[?]", math.max(#lines, 1))
    for i, text in ipairs(lines) do
        set_text(texts[i - 1], text)
    end
    local asked = ffi.new("sluice_core_request_t")
    local match = ffi.new("sluice_core_match_t")
    set_text(asked.method, request.method)
    set_text(asked.host, request.host)
    set_text(asked.path, request.path)
    asked.port = request.port or -1
    asked.is_tls = request.is_tls and 1 or 0
    set_text(asked.sni, request.sni)
    asked.headers, asked.headers_count = texts, #lines / 2
    local rc = lib.sluice_core_match(view, asked, regexes, match)
    return ffi.string(lib.sluice_core_word(rc)), match
end

--- What `match` is told of a header: the values of all its lines.
function _M.header(lines)
    return { lines = lines }
end

function methods:match(method, host, port, path, get, tls)
    local word, match = _M.ask(self.view, method, host, port, path, get, tls)
    if word == "none" then
        return nil
    end
    local value = self.values[match.slot + 1]
    if word ~= "ok" then
        local message = ffi.new("char[256]")
        lib.sluice_core_reason(match.reason, message, 256)
        return false, value, ffi.string(message)
    end
    if match.prefix < 0 then
        return value
    end
    local pattern = core.string(match.pattern.data, match.pattern.length)
    local re = pattern and assert(regex.compile(pattern, { anchored = true }))
    return value, path:sub(1, match.prefix), re
end

function _M.check_regex(pattern, is_header)
    local message = ffi.new("char[256]")
    local is_path = is_header and 0 or 1
    if lib.sluice_core_regex_check(pattern, #pattern, is_path, message, 256) == 0 then
        return true
    end
    return nil, ffi.string(message)
end

--- What validation will have refused before anything is built.
local function check(route)
    for _, path in ipairs(route.paths or {}) do
        local ok, err = true, nil
        if path:sub(1, 1) == "~" then
            ok, err = _M.check_regex(path:sub(2))
        end
        if not ok then
            return nil, ("invalid regex '%s': %s"):format(path:sub(2), err)
        end
    end
    for _, values in pairs(route.headers or {}) do
        for _, value in ipairs(values) do
            local ok, err = true, nil
            if value:sub(1, 2) == "~*" then
                ok, err = _M.check_regex(value:sub(3), true)
            end
            if not ok then
                return nil, ("invalid regex '%s': %s"):format(value, err)
            end
        end
    end
    return true
end

function _M.new(routes, values)
    local list = {}
    for i, route in ipairs(routes) do
        local ok, err = check(route)
        if not ok then
            return nil, err
        end
        list[i] = core.route(route, i - 1, i)
    end
    local image = assert(core.build(list))
    local view = core.view(image)
    local bits, needs = lib.sluice_core_needs(view), {}
    for name, bit_of in pairs(NEEDS) do
        needs[name] = bit.band(bits, bit_of) ~= 0
    end
    return setmetatable({ image = image, view = view, values = values, needs = needs }, mt)
end

return _M
