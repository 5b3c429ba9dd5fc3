--- Regular expressions for the router: a small binding to PCRE2.
--
-- One engine everywhere: the same library decides in `sluice check`, in the
-- unit tests and inside nginx, so a pattern cannot be valid in one place and
-- fail in another. `ngx.re` was the alternative: as fast (`docs/router.md`),
-- but it exists only inside nginx, is another library there (Debian 12 builds
-- the Lua module with the old PCRE), and keeps all patterns in one cache of
-- `lua_regex_cache_max_entries`, beyond which it compiles at each request.
-- libpcre2-8 is there wherever Debian is: nginx links to it, and libselinux1,
-- which dpkg and coreutils need, depends on it.
--
-- Patterns work on bytes (no UTF mode), as Kong's users have it.
--
-- @module gateway.router.regex
-- @usage
-- local re = assert(regex.compile([[/users/(?<id>\d+)]], { anchored = true }))
-- re:match("/users/42/posts")     --> 9

local ffi = require("ffi")

local find, format = string.find, string.format
local tonumber = tonumber

-- Names to try, in order: the runtime library, then what a linker would find.
local LIBRARIES = { "libpcre2-8.so.0", "pcre2-8" }

local CASELESS = 0x00000008
local DOLLAR_ENDONLY = 0x00000010
local ANCHORED = 0x80000000
local NO_JIT = 0x00002000
local JIT_COMPLETE = 0x00000001
local INFO_CAPTURECOUNT = 4
local INFO_SIZE = 22
local ERROR_NOMATCH = -1
local ERROR_JIT_STACKLIMIT = -46

-- Groups that one pattern may have; Kong's users have a handful.
local MAX_GROUPS = 99
-- Bytes that a pattern may compile to, and so many more for each byte of its text. Repeated groups
-- multiply: fifteen characters can become 64 KB, which take milliseconds to translate.
local MAX_SIZE = 2048
local MAX_SIZE_BYTE = 16
-- Above so many, and so many for each byte of its text, PCRE's interpreter runs it: the JIT takes
-- nine times as long as compiling, and a small file has thousands of patterns.
local MAX_JIT_SIZE = 256
local MAX_JIT_SIZE_BYTE = 8
-- Steps before a match is given up: bounds what a pattern with catastrophic
-- backtracking can cost one request (some ms).
local MATCH_LIMIT = 100000

local MESSAGE_SIZE = 256

ffi.cdef([[
void *pcre2_compile_8(const char *pattern, size_t length, uint32_t options,
                      int *error, size_t *offset, void *context);
void pcre2_code_free_8(void *code);
int pcre2_jit_compile_8(void *code, uint32_t options);
int pcre2_match_8(const void *code, const char *subject, size_t length, size_t start,
                  uint32_t options, void *match_data, void *context);
int pcre2_get_error_message_8(int error, char *buffer, size_t size);
int pcre2_pattern_info_8(const void *code, uint32_t what, void *where);
void *pcre2_match_data_create_8(uint32_t pairs, void *context);
size_t *pcre2_get_ovector_pointer_8(void *match_data);
void *pcre2_match_context_create_8(void *context);
int pcre2_set_match_limit_8(void *context, uint32_t limit);
]])

local _M = {}
local methods = {}
local mt = { __index = methods }

-- Set by `load`: the library, and what every match of this process shares (a
-- match never yields, so one of each is enough).
local lib, match_data, match_context, ovector

local function load()
    if lib then
        return true
    end
    local reason
    for _, name in ipairs(LIBRARIES) do
        local ok, loaded = pcall(ffi.load, name)
        if ok then
            match_data = loaded.pcre2_match_data_create_8(MAX_GROUPS + 1, nil)
            ovector = loaded.pcre2_get_ovector_pointer_8(match_data)
            match_context = loaded.pcre2_match_context_create_8(nil)
            loaded.pcre2_set_match_limit_8(match_context, MATCH_LIMIT)
            lib = loaded
            return true
        end
        reason = reason or loaded
    end
    return nil, format("cannot load PCRE2 (Debian: apt-get install libpcre2-8-0): %s", reason)
end

local function info(code, what)
    local value = ffi.new("uint32_t[1]")
    lib.pcre2_pattern_info_8(code, what, value)
    return value[0]
end

local function size_of(code)
    local value = ffi.new("size_t[1]")
    lib.pcre2_pattern_info_8(code, INFO_SIZE, value)
    return tonumber(value[0])
end

--- What PCRE says of one of its codes.
local function message(code)
    local buffer = ffi.new("char[?]", MESSAGE_SIZE)
    lib.pcre2_get_error_message_8(code, buffer, MESSAGE_SIZE)
    return ffi.string(buffer)
end

local function compile_code(pattern, options)
    local error_code, offset = ffi.new("int[1]"), ffi.new("size_t[1]")
    local code = lib.pcre2_compile_8(pattern, #pattern, options, error_code, offset, nil)
    if code == nil then
        return nil, format("%s at offset %d", message(error_code[0]), tonumber(offset[0]))
    end
    return ffi.gc(code, lib.pcre2_code_free_8)
end

--- Compile a pattern.
--
-- Takes some tens of microseconds; does not yield.
--
-- @tparam string pattern PCRE syntax, at most 99 groups
-- @tparam[opt] table opts `anchored`: every alternative must match at the
--   subject's first byte; `caseless`: ignore the case of letters; `check`: it is
--   not to be run, only looked at; `one_limit`: the limit of steps is that of the
--   whole search, where PCRE alone counts anew for each byte at which a match could
--   begin (what has matched is not told then)
-- @treturn[1] table with the method `match`
-- @treturn[2] nil
-- @treturn[2] string PCRE's message and the offset, or why PCRE is missing
-- @phases any
function _M.compile(pattern, opts)
    local ok, reason = load()
    if not ok then
        return nil, reason
    end

    -- Otherwise "$" would also match before a newline at the subject's end, and
    -- "/admin%0A" pass for "/admin".
    local options = DOLLAR_ENDONLY
    if opts and opts.anchored then
        options = options + ANCHORED
    end
    if opts and opts.caseless then
        options = options + CASELESS
    end

    local code, err = compile_code(pattern, options)
    if not code then
        return nil, err
    end
    if info(code, INFO_CAPTURECOUNT) > MAX_GROUPS then
        return nil, format("more than %d groups", MAX_GROUPS)
    end
    local size = size_of(code)
    if size > MAX_SIZE + MAX_SIZE_BYTE * #pattern then
        return nil, "too large once its repetitions are unfolded"
    end
    if opts and opts.one_limit and not find(pattern, "^%.%*[^|]*$") then
        -- PCRE itself begins with ".*" but once. What cannot stand in a group (a verb at its
        -- beginning) stays as it is.
        code = compile_code("(?s:.*?)(?:" .. pattern .. ")", options + ANCHORED) or code
    end
    if not (opts and opts.check) and size <= MAX_JIT_SIZE + MAX_JIT_SIZE_BYTE * #pattern then
        -- Without executable memory this fails and the interpreter of PCRE works.
        lib.pcre2_jit_compile_8(code, JIT_COMPLETE)
    end

    return setmetatable({ code = code }, mt)
end

--- Run the pattern; offsets are left in `ovector`.
-- @treturn number above 0: it matched; ERROR_NOMATCH; else why PCRE gave up
local function run(re, subject)
    local rc = lib.pcre2_match_8(re.code, subject, #subject, 0, 0, match_data, match_context)
    if rc == ERROR_JIT_STACKLIMIT then
        rc = lib.pcre2_match_8(re.code, subject, #subject, 0, NO_JIT, match_data, match_context)
    end
    return rc
end

--- Does the subject match?
--
-- Allocates nothing; bounded by PCRE's match limit of 100,000 steps. Beyond it
-- nobody knows: neither "yes" nor "no" is a safe answer for a router.
--
-- @tparam string subject
-- @treturn[1] number offset of the last byte that matched
-- @treturn[2] nil it does not match
-- @treturn[3] number below 0: PCRE gave up, `reason` says why
-- @phases any
function methods:match(subject)
    local rc = run(self, subject)
    if rc > 0 then
        return tonumber(ovector[1])
    elseif rc == ERROR_NOMATCH then
        return nil
    end
    return rc
end

--- Why a match was given up, in PCRE's words: `reason(code)`, of what `match` has returned.
-- @phases any
_M.reason = message

return _M
