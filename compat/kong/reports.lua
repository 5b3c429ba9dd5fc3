--- What Kong tells its makers of a node: nothing is told here, and nobody is asked. `kong.reports`.
-- @module kong.reports

local function nothing() end

-- Whatever is called does nothing.
return setmetatable({}, {
    __index = function()
        return nothing
    end,
})
