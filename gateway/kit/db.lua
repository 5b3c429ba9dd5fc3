--- `kong.db`: a table for each kind of entities (gateway.kit.db.dao), `daos` with all of them,
-- `strategy`, `connector`, `errors`.
-- @module gateway.kit.db

local configuration = require("gateway.kit.configuration")
local dao = require("gateway.kit.db.dao")
local entities = require("gateway.entities")
local errors = require("gateway.kit.db.errors")

local _M = {}

-- Nobody runs SQL here.
local NO_SQL = "Sluice has no SQL; use kong.db.<entity>"

local connector = setmetatable({}, {
    __index = function()
        return function()
            return nil, NO_SQL
        end
    end,
})

local db = {}

-- kind -> table; plugins add kinds until all are loaded
local made = {}

local function find(_, name)
    if made[name] then
        return made[name]
    elseif name == "strategy" then
        return configuration.view.database
    elseif name == "daos" then
        for _, kind in ipairs(entities.kinds) do
            made[kind] = made[kind] or dao.new(db, kind)
        end
        return made
    elseif type(name) == "string" and entities.get(name) then
        made[name] = dao.new(db, name)
        return made[name]
    end
    return nil
end

db.connector = connector
db.errors = errors
setmetatable(db, { __index = find })

--- The table of plugins.
_M.view = db

return _M
