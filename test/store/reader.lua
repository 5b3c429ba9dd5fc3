--- Opens each store whose path comes on a line, and answers on a line: "<revision> fine", or what
--- is wrong. It writes, as the next gateway would.

local database = require("gateway.store.database")
local entity_text = require("gateway.store.entity_text")
local schemas = require("test.store.schemas")

local function found(store)
    local lines = {}
    for _, kind in ipairs({ "parents", "children" }) do
        for _, row in ipairs(store:list(kind)) do
            local entity = entity_text.decode(row.text)
            lines[#lines + 1] = ("%s %s %d"):format(kind, row.id, entity.made_by)
        end
    end
    table.sort(lines)
    return table.concat(lines, "\n")
end

local function look(path)
    local store, err = database.open(path, { layouts = schemas.layouts, verify = true })
    if not store then
        return "cannot be opened: " .. err.message
    end
    local revision = store:revision().revision
    local ok, damage = store:check()
    local answer = revision .. " fine"
    if not ok then
        answer = "damaged: " .. damage.message
    elseif found(store) ~= schemas.expected(revision) then
        answer = ("revision %d is not what was written: %s"):format(revision, found(store))
    elseif not store:transaction(schemas.changes(revision + 1)) then
        answer = "takes no further change"
    end
    store:close()
    return (answer:gsub("\n", ", "))
end

for path in io.lines() do
    io.write(look(path), "\n")
    io.flush()
end
