--- The class that plugins for Kong 2 extend, which Kong 3 has not any more: they run with it.
--
-- Its phases do nothing: they are there for plugins that call those of `super`. The gateway makes
-- an object of such a class, and runs the phases that the class has itself.
-- @module kong.plugins.base_plugin

local PHASES = {
    "init_worker",
    "certificate",
    "rewrite",
    "access",
    "response",
    "header_filter",
    "body_filter",
    "log",
}

local Base = {}
Base.__index = Base

--- Makes a class: `local Mine = BasePlugin:extend()`.
-- @treturn table with `super`, the class that it is of
-- @phases any
function Base:extend()
    local class = { super = self }
    for name, value in pairs(self) do
        if type(name) == "string" and name:find("^__") then
            class[name] = value
        end
    end
    class.__index = class
    return setmetatable(class, self)
end

--- Called with each new object.
-- @tparam string name of the plugin
-- @phases any
function Base:new(name)
    self._name = name
end

--- Makes an object of the class. A phase that is not its own is false.
-- @treturn table
-- @phases any
function Base:__call(...)
    local object = setmetatable({}, self)
    object:new(...)
    for _, phase in ipairs(PHASES) do
        if object[phase] == Base[phase] then
            object[phase] = false
        end
    end
    return object
end

for _, phase in ipairs(PHASES) do
    Base[phase] = function() end
end

return setmetatable(Base, { __call = Base.__call })
