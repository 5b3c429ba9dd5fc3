--- What Lua and the C module share: declarations for FFI, compared with those of the module that
-- nginx has loaded (module/gateway/process/ngx_sluice_abi.c).
--
-- Structs and their fields have the same sizes and places, functions as many arguments of the same
-- kinds; what the module does not have is a mismatch, too. So is a flag of another value.
-- @module sluice.abi
-- @usage
-- local is_there, err = abi.declare("int sluice_var_count(void);")

local built = require("sluice.built")
local ffi = require("ffi")

local C = ffi.C

local _M = {}

-- NGX_SLUICE_ABI_VERSION
local VERSION = 1

ffi.cdef([[
typedef struct {
    const char *name;
    const char *of;
    uint32_t offset;
    uint32_t size;
} sluice_abi_t;

int sluice_abi_version(void);
const sluice_abi_t *sluice_abi(int i);
]])

local MISSING = (
    "the Sluice module is not loaded: put 'load_module %s;' behind the load_module line "
    .. "of the Lua module in nginx.conf"
):format(built.module)

local MISMATCH = "the Sluice module in nginx is of another version than its Lua files (%s); "
    .. built.remedy
    .. ", then restart nginx"

--- Types by what a call makes of them; all others are themselves.
local KINDS = {
    int = "int32_t",
    unsigned = "uint32_t",
    size_t = "uint64_t",
}

--- What the module has: `functions`: name -> text, `structs`: name -> `{ size, fields }`; flags are
-- fields of one struct, their values in place of offsets.
local shared

local function version()
    return C.sluice_abi_version()
end

local function read_module()
    local functions, structs = {}, {}
    local i, entry = 0, C.sluice_abi(0)
    while entry.name ~= nil do
        local name, of = ffi.string(entry.name), ffi.string(entry.of)
        if of:find("(", 1, true) then
            functions[name] = of
        elseif of == "" then
            structs[name] = { size = entry.size, fields = {} }
        else
            structs[name].fields[of] = { offset = entry.offset, size = entry.size }
        end
        i = i + 1
        entry = C.sluice_abi(i)
    end
    return { functions = functions, structs = structs }
end

--- The kind of a type, with or without a name behind it.
local function kind_of(text)
    if text:find("[*(]") or text:find("_pt%f[^%w_]") then
        return "pointer"
    end
    local word = text:gsub("const ", ""):match("[%w_]+")
    return KINDS[word] or word
end

--- "int (const char *name, size_t length)" -> "int32_t pointer uint64_t"
local function signature(result, arguments)
    local kinds = { kind_of(result) }
    -- Arguments that are functions have commas of their own.
    arguments = arguments:sub(2, -2):gsub("%b()", "()")
    for argument in arguments:gmatch("[^,]+") do
        local kind = kind_of(argument)
        if kind ~= "void" then
            kinds[#kinds + 1] = kind
        end
    end
    return table.concat(kinds, " ")
end

local function check_struct(name, body)
    local struct = shared.structs[name]
    if not struct or struct.size ~= ffi.sizeof(name) then
        return name
    end
    for declaration in body:sub(2, -2):gmatch("[^;]+") do
        local of, field, many = declaration:match("^%s*(.-)([%w_]+)([%[%]%d]*)%s*$")
        local place = field and struct.fields[field]
        local is_same = place
            and place.offset == ffi.offsetof(name, field)
            and place.size == ffi.sizeof(of .. many)
        if field and not is_same then
            return name .. "." .. field
        end
    end
    return nil
end

--- @treturn string|nil the first name that the module has otherwise
local function difference(declarations)
    if version() ~= VERSION then
        return "version " .. version()
    end
    shared = shared or read_module()
    for body, name in declarations:gmatch("typedef struct (%b{}) ([%w_]+);") do
        local other = check_struct(name, body)
        if other then
            return other
        end
    end
    local functions = declarations:gsub("typedef struct %b{} [%w_]+;", "")
    -- One statement at a time: a pattern over all of them takes time by the square of an enum.
    for statement in functions:gmatch("[^;]+") do
        local result, name, arguments = statement:match("^%s*(.-)([%w_]+)(%b())$")
        local text = name and shared.functions[name]
        if
            name
            and (not text or signature(text:match("^(.-)(%b())$")) ~= signature(result, arguments))
        then
            return name
        end
    end
    return nil
end

--- Compares flags with the module's, which is loaded.
-- @tparam string kind what they are of, as the module's names begin: "ROUTE"
-- @tparam table flags name -> value
-- @raise the module is of another version, for people
-- @phases all
function _M.check_flags(kind, flags)
    shared = shared or read_module()
    for name, value in pairs(flags) do
        name = kind .. "_" .. name
        local flag = shared.structs.flags.fields[name]
        if not flag or flag.offset ~= value then
            error(MISMATCH:format(name), 0)
        end
    end
end

--- Declares structs and functions of the module to FFI.
-- @tparam string declarations in C: structs (`typedef struct { ... } name;`) and functions
-- @treturn true|nil
-- @treturn string|nil the module is not loaded, for people
-- @raise the module is of another version, for people
-- @phases all
function _M.declare(declarations)
    ffi.cdef(declarations)
    if not pcall(version) then
        return nil, MISSING
    end
    local name = difference(declarations)
    if name then
        error(MISMATCH:format(name), 0)
    end
    return true
end

return _M
