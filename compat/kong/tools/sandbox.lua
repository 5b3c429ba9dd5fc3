--- Lua code of a configuration, in an environment that has little: `kong.tools.sandbox`.
--
-- `untrusted_lua` says whether such code runs at all ("off"), with all of the worker's globals
-- ("on"), or in a sandbox, which has what cannot reach beyond it, the modules of
-- `untrusted_lua_sandbox_requires` and the names of `untrusted_lua_sandbox_environment`.
--
-- `kong` and `ngx`, where the caller hands them in, are seen through views there: what stands in a
-- configuration can call their functions, and not put others in their place. Who hands in such an
-- environment will run the code: from then on the memory that Lua may take is bounded. Loops that
-- do not end are left to the watchdog.
-- @module kong.tools.sandbox

local views = require("sluice.views")

local error = error
local getmetatable = getmetatable
local load = load
local pairs = pairs
local pcall = pcall
local rawget = rawget
local setmetatable = setmetatable
local type = type

local _M = {}

local OFF = "loading of untrusted Lua code disabled because 'untrusted_lua' config option is set "
    .. "to 'off'"

-- What the sandbox has. Neither raw access nor metatables, which reach what all share; nothing that
-- loads code, and of `os` the clocks alone.
local NAMES = {
    [""] = "_VERSION assert error ipairs next pairs pcall select tonumber tostring type unpack "
        .. "xpcall",
    coroutine = "create resume running status wrap yield",
    math = "abs acos asin atan atan2 ceil cos cosh deg exp fmod floor frexp huge ldexp log log10 "
        .. "max min modf pi pow rad random sin sinh sqrt tan tanh",
    os = "clock date difftime time",
    string = "byte char find format gmatch gsub len lower match rep reverse sub upper",
    table = "concat insert maxn remove sort",
}

local function names_of(room)
    local from, found = room == "" and _G or _G[room], {}
    for name in NAMES[room]:gmatch("%S+") do
        found[name] = from[name]
    end
    return found
end

-- What C calls back uses the stack of C, which LuaJIT bounds for none of these: a function that
-- replaces by itself, or coroutines in coroutines, would end the worker.

local MAX_CALLBACKS, MAX_COROUTINES = 50, 100
local OVERFLOW = "C stack overflow"

local raw_gsub = string.gsub
local raw_create, raw_resume, running = coroutine.create, coroutine.resume, coroutine.running

local callbacks = 0

-- Of sluice.ffi.heap, where there is one.
local has_stack

local function leave(ok, ...)
    callbacks = callbacks - 1
    if not ok then
        error((...), 0)
    end
    return ...
end

local function gsub(text, pattern, by, count)
    if type(by) ~= "function" then
        return raw_gsub(text, pattern, by, count)
    elseif callbacks >= MAX_CALLBACKS then
        error(OVERFLOW, 2)
    end
    callbacks = callbacks + 1
    return leave(pcall(raw_gsub, text, pattern, by, count))
end

-- Coroutine -> in how many others it runs.
local depths = setmetatable({}, { __mode = "k" })

local function enter(co)
    local depth = (depths[running() or 0] or 0) + 1
    if depth > MAX_COROUTINES or (has_stack and not has_stack()) then
        error(OVERFLOW, 3)
    end
    if type(co) == "thread" then
        depths[co] = depth
    end
end

local function pass(ok, ...)
    if not ok then
        error((...), 0)
    end
    return ...
end

-- One that lacks memory would have nginx end the worker: it throws as for anything else.
local function create(fn)
    if type(fn) ~= "function" then
        return raw_create(fn)
    end
    return raw_create(function(...)
        return pass(pcall(fn, ...))
    end)
end

local function resume(co, ...)
    enter(co)
    return raw_resume(co, ...)
end

local function wrap(fn)
    local co = create(fn)
    return function(...)
        enter(co)
        return pass(raw_resume(co, ...))
    end
end

local INSTEAD = {
    coroutine = { create = create, resume = resume, wrap = wrap },
    string = { gsub = gsub },
}

-- Texts have their methods elsewhere than in the sandbox: `("x"):gsub(...)`.
local function bound_methods()
    local methods = {}
    for name, value in pairs(string) do
        methods[name] = value
    end
    methods.gsub = gsub
    methods.dump = function()
        error("string.dump is not allowed", 2)
    end
    getmetatable("").__index = setmetatable(methods, { __index = string })
end

-- A table whose own content cannot be changed.
local function protected(room)
    local found = names_of(room)
    for name, value in pairs(INSTEAD[room] or {}) do
        found[name] = value
    end
    return setmetatable({}, {
        __index = found,
        __newindex = function(_, name)
            error(("Can not modify %s.%s. Protected by the sandbox."):format(room, tostring(name)))
        end,
        __metatable = false,
    })
end

local base

local function base_environment()
    if not base then
        base = names_of("")
        for room in pairs(NAMES) do
            base[room] = room ~= "" and protected(room) or nil
        end
    end
    return base
end

-- Makes the value of "a.b.c" in `from` visible in `to`; a table as a view that keeps changes.
local function link(path, from, to)
    local name, rest = path:match("^([^.]+)%.?(.*)$")
    local value = name and from[name]
    if value == nil then
        return
    elseif rest ~= "" then
        if type(value) == "table" then
            to[name] = rawget(to, name) or {}
            link(rest, value, to[name])
        end
    elseif type(value) == "table" then
        to[name] = setmetatable({}, { __index = value })
    else
        to[name] = value
    end
end

-- What is shown of kong and ngx ------------------------------------------------------------------

-- How much more Lua may hold than when the first such code was compiled.
local MAX_BYTES = 512 * 1024 * 1024

local is_bounded = false

local function set_bounds()
    is_bounded = true
    bound_methods()
    local ngx = rawget(_G, "ngx")
    if ngx and ngx.get_phase then
        local heap = require("sluice.ffi.heap")
        if heap.limit(MAX_BYTES) then
            has_stack = heap.has_stack
        end
    end
end

-- The settings: lists in them are plain tables, so each look has a copy.
local function configuration_of(kong)
    local function find(_, name)
        local value = kong.configuration[name]
        if type(value) == "function" then
            return function(...)
                return views.copy(value(...))
            end
        end
        return views.copy(value)
    end
    local function refuse(_, name)
        local text = "Can not modify kong.configuration.%s. Protected by the sandbox."
        error(text:format(tostring(name)), 2)
    end
    return setmetatable({}, { __index = find, __newindex = refuse, __metatable = false })
end

-- What a caller hands in -> its view.
local made = setmetatable({}, { __mode = "k" })

-- `given` is the global, or a table before it that has other things in their place.
local function view_of_kong(kong, given)
    if not made[given] then
        local instead = { configuration = configuration_of(kong) }
        for name, value in pairs(given ~= kong and given or {}) do
            local path = "kong." .. name
            instead[name] = type(value) == "table" and views.of(value, path) or value
        end
        made[given] = views.of(kong, "kong", {
            instead = instead,
            lazy = { db = true },
            adds = true,
        })
    end
    return made[given]
end

local function without_class(make)
    return function(...)
        local object, err = make(...)
        return views.hide_class(object), err
    end
end

local function copy_with(from, names)
    local found = {}
    for name, value in pairs(from) do
        found[name] = names[name] and without_class(value) or value
    end
    return found
end

local SOCKETS = { tcp = true, udp = true, stream = true, connect = true }
-- What a request writes there is its own.
local RAW = { arg = true, header = true, var = true }
local WRITTEN = { ctx = true, status = true }

-- It loads any module into a state without a sandbox.
local function run_worker_thread()
    error("ngx.run_worker_thread is not allowed within sandbox", 2)
end

local function view_of_ngx(ngx)
    if not made[ngx] then
        local socket = copy_with(ngx.socket, SOCKETS)
        local req = copy_with(ngx.req, { socket = true })
        made[ngx] = views.of(ngx, "ngx", {
            plain = true,
            raw = RAW,
            instead = {
                socket = views.of(socket, "ngx.socket"),
                req = views.of(req, "ngx.req"),
                run_worker_thread = run_worker_thread,
            },
            write = function(_, name, value)
                if not WRITTEN[name] then
                    local text = "Can not modify ngx.%s. Protected by the sandbox."
                    error(text:format(tostring(name)), 2)
                end
                ngx[name] = value
            end,
        })
    end
    return made[ngx]
end

-- Puts views in the place of what the caller hands in.
local function hide(env)
    local kong, ngx = rawget(_G, "kong"), rawget(_G, "ngx")
    local given = rawget(env, "kong")
    local mt = type(given) == "table" and getmetatable(given)
    local is_before = type(mt) == "table" and rawget(mt, "__index") == kong
    if kong and (given == kong or is_before) then
        env.kong = view_of_kong(kong, given)
    end
    if ngx and ngx.get_phase and rawget(env, "ngx") == ngx then
        env.ngx = view_of_ngx(ngx)
    end
end

-- Settings ---------------------------------------------------------------------------------------

local function setting(name)
    local kong = rawget(_G, "kong")
    return kong and kong.configuration and kong.configuration[name]
end

local READ = {}

function READ.enabled()
    local word = setting("untrusted_lua")
    return word and word ~= "off"
end

function READ.sandbox_enabled()
    return setting("untrusted_lua") == "sandbox"
end

function READ.requires()
    local set = {}
    for _, name in ipairs(setting("untrusted_lua_sandbox_requires") or {}) do
        set[name] = true
    end
    return set
end

function READ.env_vars()
    return setting("untrusted_lua_sandbox_environment") or {}
end

function READ.environment(self)
    local environment = {
        require = function(name)
            if not self.requires[name] then
                error(("require '%s' not allowed within sandbox"):format(tostring(name)))
            end
            return require(name)
        end,
    }
    for _, path in ipairs(self.env_vars) do
        link(path, _G, environment)
    end
    return environment
end

local function clear(self)
    for name in pairs(self) do
        self[name] = nil
    end
end

--- What the settings say, read when it is first asked for; `clear()` has it read again.
-- @table configuration
_M.configuration = setmetatable({}, {
    __index = function(self, name)
        local read = READ[name]
        if not read then
            local fixed = { clear = clear, reload = clear, err_msg = OFF }
            return fixed[name]
        end
        local value = read(self)
        rawset(self, name, value)
        return value
    end,
})

-- Code -------------------------------------------------------------------------------------------

local configuration = _M.configuration

local function check(chunk, err)
    if not chunk then
        error(err, 0)
    end
    return chunk
end

--- Compiles code, to run where the settings say. Bytecode is never taken.
-- @tparam string code
-- @tparam[opt] table opts `env`: more names; `chunk_name`, for messages
-- @treturn function
-- @raise it does not compile, or the settings forbid it
-- @phases any
function _M.sandbox(code, opts)
    if not configuration.enabled then
        error(configuration.err_msg)
    end
    local env = opts and opts.env or {}
    local name = opts and opts.chunk_name
    if not configuration.sandbox_enabled then
        setmetatable(env, { __index = _G })
        return check(load(code, name, opts and opts.mode or "t", env))
    end
    if type(code) ~= "string" then
        error("expected a string", 2)
    end
    if opts and opts.env then
        if not is_bounded then
            set_bounds()
        end
        hide(env)
    end
    setmetatable(env, { __index = configuration.environment })
    local inside = {}
    for key, value in pairs(base_environment()) do
        local given = env[key]
        inside[key] = given == nil and value or given
    end
    setmetatable(inside, { __index = env })
    inside._G = inside
    return check(load(code, name, "t", inside))
end

--- Runs code that returns a function.
-- @tparam string code
-- @tparam[opt] table opts as of `sandbox`
-- @treturn function|boolean false: it cannot
-- @treturn string|nil why
-- @phases any
function _M.validate_function(code, opts)
    local ok, chunk = pcall(_M.sandbox, code, opts)
    if not ok then
        return false, "Error parsing function: " .. tostring(chunk)
    end
    local ran, found = pcall(chunk)
    if not ran then
        return false, found
    elseif type(found) == "function" then
        return found
    end
    return false, "Bad return value from function, expected function type, got " .. type(found)
end

--- Whether code returns a function. Runs it.
-- @tparam string code
-- @tparam[opt] table opts
-- @treturn boolean
-- @treturn string|nil why not
-- @phases any
function _M.validate(code, opts)
    local found, err = _M.validate_function(code, opts)
    if not found then
        return false, err
    end
    return true
end

--- Whether code compiles. Does not run it.
-- @tparam string code
-- @tparam[opt] table opts
-- @treturn boolean
-- @treturn string|nil why not
-- @phases any
function _M.validate_safe(code, opts)
    local ok, err = pcall(_M.sandbox, code, opts)
    if not ok then
        return false, "Error parsing function: " .. tostring(err)
    end
    return true
end

--- The function that code returns.
-- @tparam string code
-- @tparam[opt] table opts
-- @treturn function
-- @raise it returns none
-- @phases any
function _M.parse(code, opts)
    return assert(_M.validate_function(code, opts))
end

return _M
