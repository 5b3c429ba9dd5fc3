--- What is remembered of the file that is live (gateway.config.remembered), outside of Lua
-- (gateway.threads.blocks), for as long as it is. Threads read it: so it is freed when the last has
-- given it back.
-- @module gateway.change.last_file

local blocks = require("gateway.threads.blocks")

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Makes a place, in which there is nothing.
-- @treturn table
-- @phases any
function _M.new()
    return setmetatable({}, mt)
end

local function free_unused(held)
    if held.is_old and held.users == 0 then
        blocks.free(held.list)
    end
end

--- Lends what is remembered of a file.
-- @tparam string|nil origin of the entities that it is about
-- @treturn table|nil for `give_back`, with the `list`; nil: there is nothing of this one
-- @phases any
function methods:borrow(origin)
    local held = self.held
    if not held or held.origin ~= origin then
        return nil
    end
    held.users = held.users + 1
    return held
end

--- Takes back what was lent.
-- @tparam table held of `borrow`
-- @phases any
function methods.give_back(_, held)
    held.users = held.users - 1
    free_unused(held)
end

--- Keeps what is to be remembered from now on, in the place of what was.
-- @tparam table|nil list of gateway.threads.blocks, this place's from now on; an empty one is none
-- @tparam string origin of the entities that it is about
-- @phases any
function methods:keep(list, origin)
    local old = self.held
    self.held = list and { list = list, origin = origin, users = 0 }
    if list and list.count == 0 then
        blocks.free(list)
        self.held = nil
    end
    if old then
        old.is_old = true
        free_unused(old)
    end
end

return _M
