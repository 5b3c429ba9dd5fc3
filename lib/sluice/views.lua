--- Views of tables for code that may use them and not change them, such as Lua in a sandbox.
--
-- A view has what its table has, and views of the tables in it; writing to one throws. Of an object
-- (a table whose metatable has `__index`) methods get the object itself, not the view, so they may
-- write to it. What a table makes when it is asked is handed through as it is, or as a view where
-- the table is named in `lazy`.
--
-- A look-up costs one or two more than in the table itself.
-- @module sluice.views

local error = error
local getmetatable = getmetatable
local pairs = pairs
local rawget = rawget
local setmetatable = setmetatable
local tostring = tostring
local type = type

local _M = {}

local function refuse(path)
    return function(_, name)
        local text = "Can not modify %s.%s. Protected by the sandbox."
        error(text:format(path, tostring(name)), 2)
    end
end

-- Lets a name be written that the table does not have, in the view alone.
local function adder(target, shown, path)
    local deny = refuse(path)
    return function(_, name, value)
        if target[name] ~= nil then
            return deny(nil, name)
        end
        shown[name] = value
    end
end

local function is_object(value)
    local mt = getmetatable(value)
    return type(mt) == "table" and rawget(mt, "__index") ~= nil
end

-- Calls a method of an object where that of its view was called.
local function method(fn, view, object)
    return function(self, ...)
        if self == view then
            return fn(object, ...)
        end
        return fn(self, ...)
    end
end

local make

-- What a view of an object shows of a name; a method is made once.
local function reader(target, view, shown, is_lazy, path, seen)
    return function(_, name)
        local value = target[name]
        if type(value) == "function" then
            value = method(value, view, target)
            shown[name] = value
        elseif is_lazy and type(value) == "table" then
            value = make(value, path .. "." .. tostring(name), {}, seen)
            shown[name] = value
        end
        return value
    end
end

function make(target, path, opts, seen)
    if seen[target] then
        return seen[target]
    end
    local view, shown = {}, {}
    seen[target] = view
    local object = not opts.plain and is_object(target)
    for name, value in pairs(target) do
        if opts.raw and opts.raw[name] then
            shown[name] = value
        elseif type(value) == "table" then
            local lazy = opts.lazy and opts.lazy[name]
            shown[name] = make(value, path .. "." .. tostring(name), { is_lazy = lazy }, seen)
        elseif not object or type(value) ~= "function" then
            shown[name] = value
        end
    end
    for name, value in pairs(opts.instead or {}) do
        shown[name] = value
    end
    if object then
        setmetatable(shown, { __index = reader(target, view, shown, opts.is_lazy, path, seen) })
    else
        setmetatable(shown, { __index = target })
    end
    local mt = getmetatable(target)
    local call = type(mt) == "table" and rawget(mt, "__call")
    return setmetatable(view, {
        __index = shown,
        __newindex = opts.write or (opts.adds and adder(target, shown, path)) or refuse(path),
        __call = call and function(_, ...)
            return call(target, ...)
        end or nil,
        __metatable = false,
    })
end

--- Makes a view of a table. Costs a look at all that is in it.
-- @tparam table target
-- @tparam string path what messages call it
-- @tparam[opt] table opts `instead`: name -> what the view has in its place; `raw`: names of what
-- is shown as it is; `lazy`: names of objects of which what they make is viewed, too; `plain`: it
-- has no methods, whatever its metatable; `adds`: new names can be written, into the view; `write`:
-- `(view, name, value)`, what assigning does
-- @treturn table
-- @phases any
function _M.of(target, path, opts)
    return make(target, path, opts or {}, {})
end

--- A copy of plain data, all tables in it as well.
-- @tparam any value
-- @treturn any
-- @phases any
function _M.copy(value)
    if type(value) ~= "table" then
        return value
    end
    local copied = {}
    for name, inner in pairs(value) do
        copied[name] = _M.copy(inner)
    end
    return copied
end

--- Takes the way from an object to what all of its kind share: a class that is its own `__index`
-- could be had as a field of each object.
-- @tparam any object
-- @treturn any the object
-- @phases any
function _M.hide_class(object)
    local mt = type(object) == "table" and getmetatable(object)
    if type(mt) == "table" and rawget(mt, "__index") == mt then
        local methods = {}
        for name, value in pairs(mt) do
            methods[name] = name ~= "__index" and value or nil
        end
        mt.__index = methods
    end
    return object
end

return _M
