--- `ngx.re` outside of nginx, for schemas of plugins that the command line checks: by the PCRE that
-- the core has, with nginx's results and errors.
--
-- Flags are nginx's but d (DFA) and J (JavaScript), which throw; j and o change nothing here. A
-- pattern that goes back and forth for too long ends with an error.
-- @module gateway.kit.outside.re

local core = require("sluice.ffi.core")
local ffi = require("ffi")

local bor = bit.bor
local concat = table.concat
local error = error
local format = string.format
local tonumber = tonumber
local tostring = tostring
local type = type

-- pcre2.h, of which all 10.x are compatible.
ffi.cdef([[
void *pcre2_compile_8(const char *pattern, size_t length, uint32_t options, int *error,
    size_t *offset, void *context);
void pcre2_code_free_8(void *code);
int pcre2_pattern_info_8(const void *code, uint32_t what, void *where);
void *pcre2_match_data_create_from_pattern_8(const void *code, void *context);
void pcre2_match_data_free_8(void *data);
size_t *pcre2_get_ovector_pointer_8(void *data);
void *pcre2_match_context_create_8(void *context);
int pcre2_set_match_limit_8(void *context, uint32_t limit);
int pcre2_match_8(const void *code, const char *subject, size_t length, size_t from,
    uint32_t options, void *data, void *context);
int pcre2_get_error_message_8(int error, char *message, size_t size);
]])

local C = core.C

local FLAGS = {
    a = 0x80000000,
    D = 0x00000040,
    i = 0x00000008,
    j = 0,
    m = 0x00000400,
    o = 0,
    s = 0x00000020,
    u = 0x00080000,
    U = 0x40080000,
    x = 0x00000080,
}
local ONLY_NGINX = { d = "DFA", J = "JavaScript" }
local CAPTURE_COUNT, NAME_COUNT, NAME_ENTRY_SIZE, NAME_TABLE = 4, 17, 18, 19
local NO_MATCH = -1
-- Steps of one match, some tenths of a second; PCRE's own limit is ten times that.
local MATCH_LIMIT = 1000000
-- Compiled patterns that are kept.
local MAX_KEPT = 1000

local _M = {}

local kept, count, limits = {}, 0, nil
local code_of, offset_of = ffi.new("int[1]"), ffi.new("size_t[1]")
local number_of, table_of = ffi.new("uint32_t[1]"), ffi.new("const uint8_t *[1]")
local message = ffi.new("char[256]")

local function options_of(flags)
    local options = 0
    for flag in flags:gmatch(".") do
        if ONLY_NGINX[flag] then
            local words = "ngx.re: the flag %s (%s) is there in nginx only; without nginx there "
                .. "are a, D, i, j, m, o, s, u, U and x"
            error(format(words, flag, ONLY_NGINX[flag]), 4)
        elseif not FLAGS[flag] then
            error(format('unknown flag "%s" (flags "%s")', flag, flags), 4)
        end
        options = bor(options, FLAGS[flag])
    end
    return options % 2 ^ 32
end

local function info(code, what)
    C.pcre2_pattern_info_8(code, what, number_of)
    return tonumber(number_of[0])
end

-- Its named groups: `{ number, name }`, by the alphabet.
local function names_of(code)
    local names, size = {}, info(code, NAME_ENTRY_SIZE)
    C.pcre2_pattern_info_8(code, NAME_TABLE, table_of)
    for i = 0, info(code, NAME_COUNT) - 1 do
        local entry = table_of[0] + i * size
        names[i + 1] = { entry[0] * 256 + entry[1], ffi.string(entry + 2) }
    end
    return names
end

local function failure(regex)
    C.pcre2_get_error_message_8(code_of[0], message, ffi.sizeof(message))
    local text = format('pcre_compile() failed: %s in "%s"', ffi.string(message), regex)
    local offset = tonumber(offset_of[0])
    return offset < #regex and format('%s at "%s"', text, regex:sub(offset + 1)) or text
end

-- A compiled pattern; or nil and why there is none. Throws at the caller's caller's line.
local function compile(regex, flags)
    if type(regex) ~= "string" then
        error("the regular expression must be a string, got " .. type(regex), 3)
    end
    flags = flags or ""
    local key = flags .. "\0" .. regex
    if kept[key] then
        return kept[key]
    end
    local options = options_of(flags)
    local code = C.pcre2_compile_8(regex, #regex, options, code_of, offset_of, nil)
    if code == nil then
        return nil, failure(regex)
    end
    code = ffi.gc(code, C.pcre2_code_free_8)
    local data = C.pcre2_match_data_create_from_pattern_8(code, nil)
    limits = limits or C.pcre2_match_context_create_8(nil)
    if data == nil or limits == nil then
        error("no memory", 0)
    end
    C.pcre2_set_match_limit_8(limits, MATCH_LIMIT)
    if count >= MAX_KEPT then
        kept, count = {}, 0
    end
    kept[key], count =
        {
            code = code,
            data = ffi.gc(data, C.pcre2_match_data_free_8),
            groups = info(code, CAPTURE_COUNT),
            names = names_of(code),
            has_twins = flags:find("D", 1, true) ~= nil,
        }, count + 1
    return kept[key]
end

-- Where groups begin and end, `{ [0] = from, to, from, to, ... }`, good until the next match, and
-- how many took part, and group 0; nil: it does not match; nil and an error.
local function run(compiled, subject, from)
    local rc = C.pcre2_match_8(compiled.code, subject, #subject, from, 0, compiled.data, limits)
    if rc == NO_MATCH then
        return nil
    elseif rc < 0 then
        return nil, "pcre_exec() failed: " .. rc
    end
    return C.pcre2_get_ovector_pointer_8(compiled.data), rc
end

local function add_named(compiled, groups)
    for _, entry in ipairs(compiled.names) do
        local value, name = groups[entry[1]], entry[2]
        if not compiled.has_twins then
            groups[name] = value
        elseif value then
            groups[name] = groups[name] or {}
            table.insert(groups[name], value)
        end
    end
end

local function groups_of(compiled, subject, places, rc, groups)
    groups = groups or {}
    for i = 0, compiled.groups do
        local from, to = tonumber(places[2 * i]), tonumber(places[2 * i + 1])
        -- of a group that took no part both are the highest number
        groups[i] = i < rc and from <= #subject and subject:sub(from + 1, to)
    end
    add_named(compiled, groups)
    return groups
end

local function first_of(ctx)
    local pos = ctx and ctx.pos
    return pos and pos > 0 and pos - 1 or 0
end

--- `ngx.re.match`.
function _M.match(subject, regex, flags, ctx, groups)
    subject = tostring(subject)
    local compiled, err = compile(regex, flags)
    if not compiled then
        return nil, err
    end
    local places, rc = run(compiled, subject, first_of(ctx))
    if not places then
        return nil, rc
    end
    if ctx then
        ctx.pos = tonumber(places[1]) + 1
    end
    return groups_of(compiled, subject, places, rc, groups)
end

--- `ngx.re.find`.
function _M.find(subject, regex, flags, ctx, group)
    subject = tostring(subject)
    local compiled, err = compile(regex, flags)
    if not compiled then
        return nil, nil, err
    end
    local places, rc = run(compiled, subject, first_of(ctx))
    if not places then
        return nil, nil, rc
    end
    if ctx then
        ctx.pos = tonumber(places[1]) + 1
    end
    group = group and group > 0 and group or 0
    if group > compiled.groups then
        return nil, nil, "nth out of bound"
    elseif group >= rc or tonumber(places[2 * group]) > #subject then
        return nil, nil
    end
    return tonumber(places[2 * group]) + 1, tonumber(places[2 * group + 1])
end

-- Visits matches: a function that returns the next one as `run`; behind an empty one the next
-- begins a byte later, and behind the end there is none.
local function matches(compiled, subject)
    local from = 0
    return function()
        if not from then
            return nil
        end
        local places, rc = run(compiled, subject, from)
        from = nil
        if places then
            from = tonumber(places[1])
            from = places[0] == places[1] and from + 1 or from
            from = from <= #subject and from or nil
        end
        return places, rc
    end
end

--- `ngx.re.gmatch`.
function _M.gmatch(subject, regex, flags)
    subject = tostring(subject)
    local compiled, err = compile(regex, flags)
    if not compiled then
        return nil, err
    end
    local next_match = matches(compiled, subject)
    return function()
        local places, rc = next_match()
        if not places then
            return nil, rc
        end
        return groups_of(compiled, subject, places, rc)
    end
end

-- What is put into the place of a match by a text with `$1`, `${1}` and `$$`; nil: it is wrong.
local function template(text)
    local parts, at = {}, 1
    while true do
        local dollar = text:find("$", at, true)
        parts[#parts + 1] = text:sub(at, dollar and dollar - 1)
        if not dollar then
            break
        end
        local number, behind = text:match("^(%d+)()", dollar + 1)
        if not number then
            number, behind = text:match("^{(%d+)}()", dollar + 1)
        end
        if not number and text:sub(dollar + 1, dollar + 1) ~= "$" then
            return nil
        end
        parts[#parts + 1] = number and tonumber(number) or "$"
        at = behind or dollar + 2
    end
    return function(groups)
        local out = {}
        for i, part in ipairs(parts) do
            out[i] = type(part) == "number" and (groups[part] or "") or part
        end
        return concat(out)
    end
end

local function replace(compiled, subject, by, most)
    local make = type(by) == "function" and by or template(tostring(by))
    if not make then
        return nil, nil, "failed to compile the replacement template"
    end
    local parts, done, behind = {}, 0, 0
    local next_match = matches(compiled, subject)
    while done < most do
        local places, rc = next_match()
        if not places and rc then
            return nil, nil, rc
        elseif not places then
            break
        end
        local from, to = tonumber(places[0]), tonumber(places[1])
        parts[#parts + 1] = subject:sub(behind + 1, from)
        parts[#parts + 1] = tostring(make(groups_of(compiled, subject, places, rc)))
        behind, done = to, done + 1
    end
    parts[#parts + 1] = subject:sub(behind + 1)
    return concat(parts), done
end

--- `ngx.re.sub`.
function _M.sub(subject, regex, by, flags)
    local compiled, err = compile(regex, flags)
    if not compiled then
        return nil, nil, err
    end
    return replace(compiled, tostring(subject), by, 1)
end

--- `ngx.re.gsub`.
function _M.gsub(subject, regex, by, flags)
    local compiled, err = compile(regex, flags)
    if not compiled then
        return nil, nil, err
    end
    return replace(compiled, tostring(subject), by, math.huge)
end

return _M
