--- The core (module/core): images, deltas and what stands in them, by FFI.
--
-- In nginx the module has it. Outside, a library of the same sources is loaded (sluice.built). What
-- the structs and functions promise stands in module/core/image/core.h and
-- module/core/image/delta.h, which declare them.
--
-- A found record points into a mapped file, so that it is good only as long as its view is: copy
-- what has to live longer. Nothing here yields or allocates but Lua's own strings and tables.
-- @module sluice.ffi.core
-- @usage
-- local core = require("sluice.ffi.core")
-- local C = core.C
-- if C.sluice_core_published(page, published) == C.SLUICE_CORE_OK then ... end

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

local _M = {}

abi.declare("core/image")

--- The functions and constants.
_M.C = abi.library()

local C = _M.C

--- The slot that is none, as a reference holds it.
_M.NOBODY = 0xffffffff

--- The word for a code of the core: "ok", "none", "full" ...
-- @tparam number rc
-- @treturn string
function _M.word(rc)
    return ffi.string(C.sluice_core_word(rc))
end

local message = ffi.new("char[256]")

--- Why a regular expression gave up, in PCRE's words.
-- @tparam number reason of a match, or of `try_pattern`
-- @treturn string
function _M.reason(reason)
    C.sluice_core_reason(reason, message, ffi.sizeof(message))
    return ffi.string(message)
end

--- Whether the match can run a pattern. Takes some tens of microseconds.
-- @tparam string pattern PCRE syntax, at most 4,096 bytes and 99 groups
-- @tparam boolean is_path anchored, as in a path; else without case, as in a header
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check_pattern(pattern, is_path)
    local rc = C.sluice_core_regex_check(
        pattern,
        #pattern,
        is_path and 1 or 0,
        message,
        ffi.sizeof(message)
    )
    if rc ~= C.SLUICE_CORE_OK then
        return nil, ffi.string(message)
    end
    return true
end

-- Made when it is first needed.
local regexes
local reason_of = ffi.new("int[1]")

--- Runs a pattern as the match does. The first of a request may spend 1.25 ms of CPU time and
-- 50,000 steps, each of the next ones half of what is left. Does not yield.
-- @tparam string pattern that `check_pattern` takes
-- @tparam boolean is_path
-- @tparam string subject
-- @tparam[opt=false] boolean is_next it is run behind those of the calls before; else as the first
-- @treturn boolean|nil whether it matches; nil: it gave up
-- @treturn nil|number for `reason`
function _M.try_pattern(pattern, is_path, subject, is_next)
    regexes = regexes or C.sluice_core_regexes_create(C.SLUICE_CORE_REGEXES_BYTES)
    local rc = C.sluice_core_regex_try(
        regexes,
        pattern,
        #pattern,
        is_path and 1 or 0,
        subject,
        #subject,
        is_next and 0 or 1,
        reason_of
    )
    if rc == C.SLUICE_CORE_OK or rc == C.SLUICE_CORE_NONE then
        return rc == C.SLUICE_CORE_OK
    end
    return nil, reason_of[0]
end

local function string_of(text)
    if text.data == nil then
        return nil
    end
    return ffi.string(text.data, text.length)
end

--- A text of a record.
-- @tparam cdata found sluice_core_found_t
-- @tparam number field such as `C.SLUICE_CORE_ROUTE_NAME`
-- @treturn string|nil nil where it is not given
function _M.text(found, field)
    return string_of(C.sluice_core_text(found, field))
end

--- A list of texts of a record.
-- @tparam cdata found
-- @tparam number field
-- @treturn {string,...} empty where it is not given
function _M.list(found, field)
    local list = {}
    for i = 1, C.sluice_core_list(found, field) do
        list[i] = string_of(C.sluice_core_list_item(found, field, i - 1))
    end
    return list
end

--- The entity's own text: its JSON.
-- @tparam cdata found
-- @treturn string|nil
function _M.body(found)
    return string_of(C.sluice_core_body(found))
end

return _M
