--- Reads and writes nginx variables by number: what `ngx.var` gives, faster.
--
-- The directive `sluice_var_index` gives variables their numbers; docs/var.md has it and figures.
-- A variable without a number is read through `ngx.var`, so a name is never wrong here that is
-- right there. Nothing is cached: a value is what nginx would say now.
--
-- Values, nil and errors are those of `ngx.var`, and so are the phases: wherever a request is,
-- so not in `init_by_lua`, `init_worker_by_lua`, timers and the ssl phases.
-- @module sluice.var
-- @usage
-- local var = require("sluice.var")
-- local host = var.handle("host") -- once, where the file is loaded
--
-- local function access()
--     ngx.log(ngx.INFO, host:get(), " ", var.get("http_x_request_id"))
--     var.set("my_upstream", "a")
-- end

local ffi = require("ffi")
local base = require("resty.core.base")
require("resty.core.var") -- whose functions are kept below
local bulk = require("sluice.var.bulk")
local module = require("sluice.var.module")

local numbers = module.numbers()

local ffi_string = ffi.string
local get_request = base.get_request
local sluice_var_get = ffi.C.sluice_var_get
local sluice_var_set = ffi.C.sluice_var_set

local FAILED = module.FAILED
local SAME = module.SAME

-- A value of up to this many bytes is kept, as a Lua string, until another takes its place. The
-- module says when a value equals it, and then no string is made.
local KEPT_LENGTH = 256

local ngx_var = ngx.var
local metatable = getmetatable(ngx_var)
local original_get = metatable.__index
local original_set = metatable.__newindex

local data = ffi.new("u_char *[1]")

local Handle = {}
Handle.__index = Handle

local function new(name, number)
    return setmetatable({ name = name, number = number, last = "" }, Handle)
end

-- Of the variables that have numbers, by name.
local handles = {}
for name, number in pairs(numbers) do
    handles[name] = new(name, number)
end

local _M = {}

-- What could not be read or written is left to ngx.var, which finds the words for it, and by a
-- tail call, so that the error has the line of our caller. All else returns without tail calls:
-- LuaJIT counts each, and gives up a trace with 15 of them.

local function read(handle)
    local r = get_request()
    if not r then
        return nil, FAILED
    end
    local value = handle.last
    local length = sluice_var_get(r, handle.number, value, #value, data)
    if length == SAME then
        return value, SAME
    end
    if length < 0 then
        return nil, length
    end
    value = ffi_string(data[0], length)
    if length <= KEPT_LENGTH then
        handle.last = value
    end
    return value, length
end

local function write(handle, value)
    local r = get_request()
    if not r then
        return FAILED
    end
    local length = 0
    if value ~= nil then
        if type(value) ~= "string" then
            value = tostring(value)
            if type(value) ~= "string" then
                return FAILED -- a __tostring that makes none
            end
        end
        length = #value
    end
    local rc = sluice_var_set(r, handle.number, value, length)
    return rc
end

local function get(self, name)
    local handle = handles[name]
    if handle then
        local value, length = read(handle)
        if length ~= FAILED then
            return value
        end
    end
    return original_get(self, name)
end

local function set(self, name, value)
    local handle = handles[name]
    if handle and write(handle, value) == 0 then
        return
    end
    return original_set(self, name, value)
end

--- Reads a variable. Does not yield.
-- @tparam string name as in `ngx.var[name]`; a number is a capture of the last regular expression
-- @treturn string|nil nil where nginx finds no value
-- @raise as `ngx.var`
-- @phases wherever `ngx.var` works
function _M.get(name)
    return get(ngx_var, name)
end

--- Writes a variable. Does not yield.
-- @tparam string name
-- @tparam any value a string, what `tostring` makes one of, or nil for no value
-- @raise as `ngx.var`: "variable ... not changeable" and others
-- @phases wherever `ngx.var` works
function _M.set(name, value)
    return set(ngx_var, name, value)
end

--- Makes a handle: the name is looked up once. To be made where a file is loaded, in any phase.
-- @tparam string name
-- @treturn Handle
-- @raise "bad argument" where the name is no string
function _M.handle(name)
    if type(name) ~= "string" then
        error("bad argument #1 to 'handle' (string expected, got " .. type(name) .. ")", 2)
    end
    name = name:lower()
    return handles[name] or new(name)
end

--- Reads the handle's variable: as `get`.
-- @treturn string|nil
function Handle:get()
    if self.number then
        local value, length = read(self)
        if length ~= FAILED then
            return value
        end
    end
    return original_get(ngx_var, self.name)
end

--- Writes the handle's variable: as `set`.
-- @tparam any value
function Handle:set(value)
    if self.number and write(self, value) == 0 then
        return
    end
    return original_set(ngx_var, self.name, value)
end

--- Makes a reader of several variables: one call into nginx for all of them.
-- To be made where a file is loaded, in any phase.
-- @tparam table names a list of up to 100 strings
-- @treturn Bulk with the method `get(into)`: see `sluice.var.bulk`
-- @raise "bad argument" where that is something else
function _M.bulk(names)
    local wrong = bulk.wrong(names)
    if wrong then
        error("bad argument #1 to 'bulk' (" .. wrong .. ")", 2)
    end
    return bulk.new(names, handles, original_get)
end

--- The variables that the configuration indexes.
-- @treturn table name in lower case -> number; a copy
function _M.indexed()
    local copy = {}
    for name, number in pairs(numbers) do
        copy[name] = number
    end
    return copy
end

--- Lets `ngx.var` itself read and write by number, for all code in this Lua machine, until
-- `uninstall`. It changes the metatable of `ngx.var`, nothing else; a second call changes nothing.
-- To be called in `init_by_lua`.
-- @treturn boolean true
function _M.install()
    metatable.__index = get
    metatable.__newindex = set
    return true
end

--- Takes `install` back.
-- @treturn boolean true
function _M.uninstall()
    metatable.__index = original_get
    metatable.__newindex = original_set
    return true
end

return _M
