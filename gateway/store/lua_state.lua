--- Calls in a Lua state of its own, for work that takes much memory: what LuaJIT has allocated it
-- keeps for itself, where nothing of it is used any more, until its state is closed.
--
-- Such a state is as the command's: it has nothing of nginx, and no callbacks from C. It is of
-- whichever thread calls it; one at a time may. To make one and to load what is called takes some
-- 20 ms.
-- @module gateway.store.lua_state

local ffi = require("ffi")
local string_buffer = require("string.buffer")

local error = error
local find = string.find
local ipairs = ipairs
local pcall = pcall
local select = select
local tonumber = tonumber
local unpack = unpack

ffi.cdef([[
typedef struct lua_State gateway_lua_state_t;
gateway_lua_state_t *luaL_newstate(void);
void luaL_openlibs(gateway_lua_state_t *state);
int luaL_loadbuffer(gateway_lua_state_t *state, const char *text, size_t size, const char *name);
int lua_pcall(gateway_lua_state_t *state, int arguments, int results, int handler);
void lua_pushlstring(gateway_lua_state_t *state, const char *text, size_t size);
const char *lua_tolstring(gateway_lua_state_t *state, int index, size_t *size);
void lua_settop(gateway_lua_state_t *state, int index);
int lua_gc(gateway_lua_state_t *state, int what, int data);
void lua_close(gateway_lua_state_t *state);
]])

local C = ffi.C

-- LUA_GCCOUNT of lua.h: the KiB in use.
local COUNT = 3

local NO_MEMORY = "not enough memory"

-- What runs there. Its arguments are texts, and so is its result.
local MAIN = [[
local path, cpath, bytes = ...
package.path, package.cpath = path, cpath
local string_buffer = require("string.buffer")
local call = string_buffer.decode(bytes)
local function keep(...)
    return string_buffer.encode({ n = select("#", ...), ... })
end
return keep(require(call.module)[call.name](unpack(call, 1, call.n)))
]]

local _M = {}

-- NULL where there is no memory.
local function new()
    local state = C.luaL_newstate()
    if state ~= nil then
        C.luaL_openlibs(state)
    end
    return state
end

local function result(state)
    local size = ffi.new("size_t[1]")
    local text = C.lua_tolstring(state, -1, size)
    return text ~= nil and ffi.string(text, size[0]) or "no text"
end

-- False and what was thrown, or true and the results as bytes.
local function run(state, module, name, ...)
    if state == nil then
        return false, NO_MEMORY
    end
    local bytes = string_buffer.encode({ module = module, name = name, n = select("#", ...), ... })
    local failed = C.luaL_loadbuffer(state, MAIN, #MAIN, "=lua_state")
    if failed == 0 then
        for _, text in ipairs({ package.path, package.cpath, bytes }) do
            C.lua_pushlstring(state, text, #text)
        end
        failed = C.lua_pcall(state, 3, 1, 0)
    end
    local text = result(state)
    C.lua_settop(state, 0)
    return failed == 0, text
end

local function results_of(ok, text)
    if ok then
        local results = string_buffer.decode(text)
        return unpack(results, 1, results.n)
    elseif find(text, NO_MEMORY, 1, true) then
        return nil, { err = "full", message = NO_MEMORY }
    end
    error(text, 0)
end

--- Calls a function of a module, whose state then is closed. Blocks. Throws what it throws, as a
-- text.
-- @tparam string module
-- @tparam string name
-- @param ... its arguments, plain data
-- @return its results, plain data; nil and an error "full" where there is no memory for them
function _M.call(module, name, ...)
    local state = new()
    local ok, text = run(state, module, name, ...)
    if state ~= nil then
        C.lua_close(state)
    end
    return results_of(ok, text)
end

--- The same in a state that may be used again: it has loaded, and compiled, what is called. Blocks.
-- Throws nothing.
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
    state = state ~= nil and state or new()
    local ok, text = run(state, module, name, ...)
    if state ~= nil and (not ok or C.lua_gc(state, COUNT, 0) > most_kb) then
        C.lua_close(state)
        state = nil
    end
    local kept = state ~= nil and tonumber(ffi.cast("uintptr_t", state)) or 0
    return kept, pcall(results_of, ok, text)
end

return _M
