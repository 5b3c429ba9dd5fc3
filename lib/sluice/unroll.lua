--- Straight-line functions from a template.
--
-- LuaJIT compiles a function that is called often as one trace, but gives up on
-- one with a loop that turns only a few times ("inner loop in root trace"), and
-- what is interpreted pays 400 ns for each FFI call. A request walks over two
-- plugins, three headers, two limits: such loops are written as templates, and
-- their bodies repeated.
-- @module sluice.unroll
-- @usage
-- local make = unroll.compile("local f = ... return function() {{f($i)\n}} end", 3)
-- make(print)() -- prints 1, 2, 3

local _M = {}

local cache = {}

--- Compiles a template: what stands in `{{` and `}}` is repeated, with `$i`
-- being 1 to `count`. The same arguments give the same function.
-- @tparam string template Lua source, trusted
-- @tparam number count 0 or more
-- @treturn function the loaded chunk
function _M.compile(template, count)
    local key = count .. template
    local chunk = cache[key]
    if not chunk then
        local source = template:gsub("{{(.-)}}", function(body)
            local parts = {}
            for i = 1, count do
                parts[i] = body:gsub("%$i", tostring(i))
            end
            return table.concat(parts)
        end)
        chunk = assert(loadstring(source, "=unrolled " .. count))
        cache[key] = chunk
    end
    return chunk
end

return _M
