--- Lua that stands in configurations: plugins that run functions of their configuration. It runs as
-- the setting `untrusted_lua` says (kong.tools.sandbox).
--
-- Code is compiled once in a worker, at its first use; what it has as upvalues stays. Until then
-- nothing of this is loaded but the phases of configurations, which threads without nginx ask for.
-- @module gateway.kit.functions

local ipairs = ipairs
local next = next
local setmetatable = setmetatable
local type = type

local _M = {}

--- The phases in which plugins of functions have them, by the fields of their configurations.
_M.PHASES = { "certificate", "rewrite", "access", "header_filter", "body_filter", "log" }

-- Whose keys those of functions are, in the dictionary that all plugins share.
local CACHE, PREFIX = "kong_db_cache", "functions:"

local sandbox

-- What functions have beside the sandbox. As in Kong they have a cache of their own.
local opts

local function load_parts()
    sandbox = require("compat.kong.tools.sandbox")
    local cache = require("gateway.kit.cache").new(CACHE, PREFIX)
    local kong = setmetatable({ cache = cache }, { __index = rawget(_G, "kong") })
    opts = { env = { kong = kong, ngx = ngx } }
end

--- Compiles code of a configuration.
-- @tparam string code
-- @treturn function what it runs
-- @raise what is wrong with it; that `untrusted_lua` is off
-- @phases any but init
function _M.compile(code)
    if not opts then
        load_parts()
    end
    return sandbox.sandbox(code, opts)
end

-- What is to be called for a code: at first the chunk itself. One that returns a function has only
-- made it, and is not called again. A chunk that has ended its request, or has thrown, says nothing
-- of that: it is asked again.
local function first_call(list, at, chunk)
    local function call()
        local found = chunk()
        local is_function = type(found) == "function"
        if list[at] == call then
            list[at] = is_function and found or chunk
        end
        if is_function then
            return list[at]()
        end
    end
    return call
end

local function compile(codes)
    local list = {}
    for i, code in ipairs(codes) do
        list[i] = first_call(list, i, _M.compile(code))
    end
    return list
end

-- Configuration -> phase -> what to call.
local compiled = setmetatable({}, { __mode = "k" })

local function functions_of(conf, phase)
    local of = compiled[conf]
    if not of then
        of = {}
        compiled[conf] = of
    end
    local list = of[phase]
    if not list then
        list = compile(type(conf[phase]) == "table" and conf[phase] or {})
        of[phase] = list
    end
    return list
end

-- LuaJIT compiles no caller of a loop, and most configurations have one function.
local function run_others(list)
    for i = 2, #list do
        list[i]()
    end
end

local function run(conf, phase)
    local of = compiled[conf]
    local list = of and of[phase] or functions_of(conf, phase)
    if list[1] then
        list[1]()
    end
    if list[2] then
        return run_others(list)
    end
end

--- The phases that a configuration has functions for.
-- @tparam table config
-- @treturn {string,...}
-- @phases any
local function lua_phases(config)
    local found = {}
    for _, phase in ipairs(_M.PHASES) do
        local codes = config[phase]
        found[#found + 1] = type(codes) == "table" and next(codes) and phase or nil
    end
    return found
end

--- The handler of a plugin whose configuration has functions, by phases.
-- @tparam number priority
-- @treturn table
-- @phases any
function _M.handler(priority)
    local handler = { VERSION = "3.9.3", PRIORITY = priority, lua_phases = lua_phases }
    for _, phase in ipairs(_M.PHASES) do
        handler[phase] = function(_, conf)
            return run(conf, phase)
        end
    end
    return handler
end

return _M
