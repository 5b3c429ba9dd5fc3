--- Loads a file of a plugin that may not end: nginx's master, and every command, would wait for it.
--
-- A hook looks at the CPU time now and then. Compiled code calls no hooks, so LuaJIT compiles
-- nothing meanwhile. A call of C is not interrupted.
-- @module gateway.plugin.bounded

local clock = os.clock
local getinfo, sethook = debug.getinfo, debug.sethook

local _M = {}

-- Of CPU time, for one file and those that it requires.
local LIMIT_S = 10
-- Instructions between two looks at the clock.
local PAUSE = 1000000

local TEXT = "does not end: it has taken %s s of CPU time while it was loaded"

local function run(was_compiling, ok, ...)
    sethook()
    if was_compiling then
        jit.on()
    end
    if not ok then
        error((...), 0)
    end
    return ...
end

--- Calls a function; code that takes more CPU time than a limit throws at the line that it is in.
-- @tparam number limit_s
-- @tparam function fn
-- @tparam any ... its arguments
-- @return what it returns
-- @phases init
function _M.within(limit_s, fn, ...)
    local was_compiling = jit.status()
    local ends = clock() + limit_s
    local function look()
        if clock() <= ends then
            return
        end
        -- From then on at each instruction: what calls the code in a loop of pcall ends, too.
        sethook(look, "", 1)
        local running = getinfo(2, "f").func
        if running ~= run and running ~= _M.within then
            error(TEXT:format(limit_s), 2)
        end
    end
    jit.off()
    sethook(look, "", PAUSE)
    return run(was_compiling, pcall(fn, ...))
end

--- The same with 10 s.
-- @tparam function fn
-- @tparam any ... its arguments
-- @return what it returns
-- @phases init
function _M.call(fn, ...)
    return _M.within(LIMIT_S, fn, ...)
end

return _M
