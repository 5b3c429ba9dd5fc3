--- The kinds of the tests in this folder, and what they write: transaction `i` of a run changes
--- entities of both kinds together, so that half of one would show.

local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")

local _M = {}

local ID = { id = { type = "string" } }
local NAME = { name = { type = "string", unique = true } }
local FILL = ("x"):rep(700)

_M.layouts = layout.derive({
    { name = "parents", endpoint_key = "name", fields = { ID, NAME } },
    {
        name = "children",
        endpoint_key = "name",
        fields = { ID, NAME, { parent = { type = "foreign", reference = "parents" } } },
    },
})

local function put(kind, entity)
    return { kind = kind, put = entity_text.encode(entity) }
end

--- The changes that make revision `i`. Entities come, change, move and go.
function _M.changes(i)
    local parent = "p" .. i
    local changes = {
        put("parents", { id = parent, name = "n" .. i % 5, fill = FILL, made_by = i }),
        put("children", { id = "c" .. i % 3, parent = { id = parent }, fill = FILL, made_by = i }),
    }
    if i > 5 then
        -- has the name that the new one takes; its child has moved, or moves now
        changes[3] = { kind = "parents", delete = "p" .. i - 5 }
    end
    return changes
end

--- What stands after revision `n`: "kind id made_by" of each entity.
function _M.expected(n)
    local lines = {}
    for i = math.max(1, n - 4), n do
        lines[#lines + 1] = ("parents p%d %d"):format(i, i)
    end
    for i = math.max(1, n - 2), n do
        lines[#lines + 1] = ("children c%d %d"):format(i % 3, i)
    end
    table.sort(lines)
    return table.concat(lines, "\n")
end

return _M
