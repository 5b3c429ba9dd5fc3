--- Stores of the tests, in folders of their own.

local database = require("gateway.store.database")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")
local support = require("test.unit.support.config")
local tables = require("gateway.store.tables")

local _M = {}

-- So that plugins' kinds are known.
_M.registry = support.registry
_M.parse = support.parse

local made = {}

--- A folder that `clean` removes.
function _M.folder()
    local path = os.tmpname()
    os.remove(path)
    os.execute("mkdir " .. path)
    made[#made + 1] = path
    return path
end

--- Removes what the tests have made.
function _M.clean()
    for _, path in ipairs(made) do
        os.execute("chmod -R u+w " .. path .. " && rm -rf " .. path)
    end
    made = {}
end

--- The schemas of all kinds.
function _M.schemas()
    local schemas = {}
    for i, kind in ipairs(entities.kinds) do
        schemas[i] = entities.get(kind)
    end
    return schemas
end

--- The layouts of all kinds.
function _M.layouts()
    return layout.derive(_M.schemas())
end

--- Opens a store, in a new folder unless told otherwise.
function _M.open(path, opts)
    local all = { layouts = _M.layouts() }
    for key, value in pairs(opts or {}) do
        all[key] = value
    end
    return database.open(path or _M.folder() .. "/store/store.db", all)
end

--- A UUID with that number.
function _M.uuid(number)
    return ("00000000-0000-4000-8000-%012d"):format(number)
end

--- An upsert; `more`: `sequence`.
function _M.put(kind, entity, more)
    local sequence = more and more.sequence
    return { kind = kind, put = assert(entity_text.encode(entity)), sequence = sequence }
end

--- A deletion.
function _M.delete(kind, id)
    return { kind = kind, delete = id }
end

--- A reference.
function _M.to(id)
    return { id = id }
end

--- A snapshot of gateway.config as a list for `replace`.
function _M.items(snapshot)
    local items = {}
    for _, kind in ipairs(entities.kinds) do
        for _, entity in ipairs(snapshot[kind]) do
            items[#items + 1] = _M.put(kind, entity)
        end
    end
    return items
end

--- The ids of rows, in one string.
function _M.ids(rows)
    local out = {}
    for i, row in ipairs(rows) do
        out[i] = row.id
    end
    return table.concat(out, " ")
end

_M.FORMAT = tables.FORMAT

return _M
