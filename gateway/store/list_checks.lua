--- References in lists of ids, which stand in the texts of entities: SQLite knows nothing of them.
-- @module gateway.store.list_checks

local entity_text = require("gateway.store.entity_text")
local lists = require("gateway.entities.lists")
local rules = require("gateway.schema.rules")

local format = string.format

local _M = {}

local function refuse(err)
    error({ refused = err }, 0)
end

-- Who has an id in a list. Reads the texts of all entities of the kind, at the speed of memory.
local function find_listed(db, of, list, id)
    local sql = format("SELECT id, text FROM e_%s WHERE instr(text, ?) > 0", of.kind)
    for _, row in ipairs(db:rows(sql, id)) do
        if rules.contains(lists.items(entity_text.decode(row[2]), list), id) then
            return row[1]
        end
    end
    return nil
end

--- Refuses that an entity which stands in a list is gone.
-- @tparam table db connection
-- @tparam table by_kind kind -> layout
-- @tparam number revision at which entities went
-- @raise `{ refused = err }`: "referenced"
function _M.check_gone(db, by_kind, revision)
    for _, of in pairs(by_kind) do
        for _, list in ipairs(of.lists or {}) do
            local sql = "SELECT id FROM gone WHERE revision = ? AND kind = ?"
            for _, row in ipairs(db:rows(sql, revision, list.reference)) do
                local by_id = find_listed(db, of, list, row[1])
                if by_id then
                    refuse({
                        err = "referenced",
                        kind = list.reference,
                        field = "id",
                        value = row[1],
                        by = of.kind,
                        by_id = by_id,
                        by_list = list.name,
                    })
                end
            end
        end
    end
end

--- Refuses that an entity which is put has something in a list that is not there.
-- @tparam table db connection
-- @tparam table change of gateway.store.transaction
-- @raise `{ refused = err }`: "reference missing"
function _M.check_put(db, change)
    local of = change.of
    for _, list in ipairs(change.put and of.lists or {}) do
        local is_given = change.put:find('"' .. list.keys[#list.keys] .. '":[', 1, true)
        local ids = is_given and lists.items(entity_text.decode(change.put), list)
        for _, id in ipairs(ids or {}) do
            if not db:row(format("SELECT 1 FROM e_%s WHERE id = ?", list.reference), id) then
                refuse({
                    err = "reference missing",
                    kind = of.kind,
                    field = list.name,
                    value = id,
                    id = change.id,
                })
            end
        end
    end
end

return _M
