--- PCRE2 without anything between: what the oracle and the tests of patterns compare with.

local ffi = require("ffi")

local CASELESS = 0x00000008
local DOLLAR_ENDONLY = 0x00000010
local ANCHORED = 0x80000000
local ERROR_NOMATCH = -1
local MAX_GROUPS = 99

ffi.cdef([[
void *pcre2_compile_8(const char *pattern, size_t length, uint32_t options,
                      int *error, size_t *offset, void *context);
void pcre2_code_free_8(void *code);
int pcre2_match_8(const void *code, const char *subject, size_t length, size_t start,
                  uint32_t options, void *match_data, void *context);
void *pcre2_match_data_create_8(uint32_t pairs, void *context);
size_t *pcre2_get_ovector_pointer_8(void *match_data);
]])

local lib = ffi.load("libpcre2-8.so.0")
local match_data = lib.pcre2_match_data_create_8(MAX_GROUPS + 1, nil)
local ovector = lib.pcre2_get_ovector_pointer_8(match_data)

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Compiles a pattern.
-- @tparam string pattern
-- @tparam[opt] table opts `anchored`, `caseless`
-- @treturn table|nil nil where it does not compile
function _M.compile(pattern, opts)
    opts = opts or {}
    local options = DOLLAR_ENDONLY
        + (opts.anchored and ANCHORED or 0)
        + (opts.caseless and CASELESS or 0)
    local err, offset = ffi.new("int[1]"), ffi.new("size_t[1]")
    local code = lib.pcre2_compile_8(pattern, #pattern, options, err, offset, nil)
    if code == nil then
        return nil
    end
    return setmetatable({ code = ffi.gc(code, lib.pcre2_code_free_8) }, mt)
end

--- Matches a subject.
-- @treturn number|nil offset of the last byte that matched; nil: none did
-- @raise PCRE gave up
function methods:match(subject)
    local rc = lib.pcre2_match_8(self.code, subject, #subject, 0, 0, match_data, nil)
    if rc == ERROR_NOMATCH then
        return nil
    end
    assert(rc > 0, rc)
    return tonumber(ovector[1])
end

return _M
