--- Calls in a Lua state of its own, for work that takes much memory: what LuaJIT has allocated it
-- keeps for itself, where nothing of it is used any more, until its state is closed.
--
-- Such a state is as the command's: it has nothing of nginx, and no callbacks from C. It is of
-- whichever thread calls it; one at a time may. To make one and to load what is called takes some
-- 20 ms.
-- @module gateway.threads.lua_state

local ffi = require("ffi")
local string_buffer = require("string.buffer")

local format = string.format

ffi.cdef([[
typedef struct lua_State gateway_lua_state_t;
gateway_lua_state_t *luaL_newstate(void);
int luaL_loadbuffer(gateway_lua_state_t *state, const char *text, size_t size, const char *name);
int lua_pcall(gateway_lua_state_t *state, int arguments, int results, int handler);
int lua_cpcall(gateway_lua_state_t *state, int (*fn)(gateway_lua_state_t *state), void *data);
const char *lua_tolstring(gateway_lua_state_t *state, int index, size_t *size);
void lua_settop(gateway_lua_state_t *state, int index);
int lua_gc(gateway_lua_state_t *state, int what, int data);
void lua_close(gateway_lua_state_t *state);
int luaopen_base(gateway_lua_state_t *state);
int luaopen_package(gateway_lua_state_t *state);
int luaopen_table(gateway_lua_state_t *state);
int luaopen_io(gateway_lua_state_t *state);
int luaopen_os(gateway_lua_state_t *state);
int luaopen_string(gateway_lua_state_t *state);
int luaopen_math(gateway_lua_state_t *state);
int luaopen_debug(gateway_lua_state_t *state);
int luaopen_bit(gateway_lua_state_t *state);
int luaopen_jit(gateway_lua_state_t *state);
int luaopen_ffi(gateway_lua_state_t *state);
int malloc_trim(size_t pad);
]])

local C = ffi.C

-- Of glibc alone: other C libraries give free memory back by themselves.
local has_trim = pcall(function()
    return C.malloc_trim
end)

-- LUA_GCCOUNT of lua.h: the KiB in use.
local COUNT = 3

local NO_MEMORY = "not enough memory"

-- Those of luaL_openlibs, in its order.
local LIBRARIES =
    { "base", "package", "table", "io", "os", "string", "math", "debug", "bit", "jit", "ffi" }

-- What runs there. Its arguments are texts of the caller, which it reads where they are: to give
-- them in any other way takes memory outside of a protected call. Its result is a text.
local MAIN = [[
local ffi = require("ffi")
local function at(address, size)
    return ffi.string(ffi.cast("const char *", ffi.cast("uintptr_t", address)), size)
end
package.path, package.cpath = at(%s), at(%s)
local string_buffer = require("string.buffer")
local call = string_buffer.decode(at(%s))
local function keep(...)
    return string_buffer.encode({ n = select("#", ...), ... })
end
return keep(require(call.module)[call.name](unpack(call, 1, call.n)))
]]

local _M = {}

-- Makes a state. NULL where there is no memory. All that follows luaL_newstate is protected: what
-- is thrown outside of that ends the process.
local function new()
    local state = C.luaL_newstate()
    for i = 1, state ~= nil and #LIBRARIES or 0 do
        if C.lua_cpcall(state, C["luaopen_" .. LIBRARIES[i]], nil) ~= 0 then
            C.lua_close(state)
            return nil
        end
    end
    return state
end

local function place_of(text)
    return format("0x%xULL, %d", tonumber(ffi.cast("uintptr_t", ffi.cast("char *", text))), #text)
end

-- What a state runs for a call. The texts have to live as long as it runs.
local function program_of(module, name, ...)
    local call = { module = module, name = name, n = select("#", ...), ... }
    local texts = { package.path, package.cpath, string_buffer.encode(call) }
    local main = format(MAIN, place_of(texts[1]), place_of(texts[2]), place_of(texts[3]))
    return { texts = texts, main = main }
end

-- Gives the memory of a state back, and what the C library keeps of what was freed in any thread:
-- half a kilobyte for each entity of a large file. That takes some milliseconds for 100 MB.
local function close(state)
    C.lua_close(state)
    if has_trim then
        C.malloc_trim(0)
    end
end

local function result(state)
    local size = ffi.new("size_t[1]")
    local text = C.lua_tolstring(state, -1, size)
    return text ~= nil and ffi.string(text, size[0]) or "no text"
end

-- False and what was thrown, or true and the results as bytes. Throws nothing.
local function run(state, program)
    if state == nil then
        return false, NO_MEMORY
    end
    local failed = C.luaL_loadbuffer(state, program.main, #program.main, "=lua_state")
    if failed == 0 then
        failed = C.lua_pcall(state, 0, 1, 0)
    end
    local ok, text = pcall(result, state)
    C.lua_settop(state, 0)
    return ok and failed == 0, text
end

local function results_of(ok, text)
    local results = text
    if ok then
        ok, results = pcall(string_buffer.decode, text)
    end
    if ok then
        return unpack(results, 1, results.n)
    elseif string.find(results, NO_MEMORY, 1, true) then
        return nil, { err = "full", message = NO_MEMORY }
    end
    error(results, 0)
end

--- Calls a function of a module, whose state then is closed. Blocks. Throws what it throws, as a
-- text.
-- @tparam string module
-- @tparam string name
-- @param ... its arguments, plain data
-- @return its results, plain data; nil and an error "full" where there is no memory for them
function _M.call(module, name, ...)
    local program = program_of(module, name, ...)
    local state = new()
    local ok, text = run(state, program)
    if state ~= nil then
        close(state)
    end
    return results_of(ok, text)
end

--- The same in a state that may be used again: it has loaded, and compiled, what is called. Blocks.
-- Throws nothing but "not enough memory", before it does anything.
-- @tparam number address of a state, of an earlier call; 0: a new one
-- @tparam number most_kb what it may have allocated at the end to be kept
-- @tparam string module
-- @tparam string name
-- @param ... its arguments, plain data
-- @treturn number the state's address for the next call, 0: it is closed
-- @treturn boolean false where the function has thrown
-- @return its results as of `call`, or what it has thrown
function _M.reuse(address, most_kb, module, name, ...)
    local state = ffi.cast("gateway_lua_state_t *", ffi.cast("uintptr_t", address))
    local program = program_of(module, name, ...)
    state = state ~= nil and state or new()
    local ok, text = run(state, program)
    if state ~= nil and (not ok or C.lua_gc(state, COUNT, 0) > most_kb) then
        close(state)
        state = nil
    end
    local kept = state ~= nil and tonumber(ffi.cast("uintptr_t", state)) or 0
    return kept, pcall(results_of, ok, text)
end

return _M
