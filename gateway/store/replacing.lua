--- All entities of a store in one transaction: those of a file, in the place of what is there; or
-- the changes that lead from the file that they were made from to the next one.
-- @module gateway.store.replacing

local address = require("sluice.address")
local filling = require("gateway.store.filling")
local reading = require("gateway.store.reading")
local transaction = require("gateway.store.transaction")
local writing = require("gateway.store.writing")

local format = string.format

-- e_<kind>'s columns before those of the layout, in what gateway.store.transaction reads. The last
-- one is the text.
local OWN = 4

local _M = {}

--- Makes a store hold these entities and no others (gateway.store.database has what holds).
-- @tparam table self store
-- @tparam {table,...} items `{ kind =, put = }`, which get their `sequence`
-- @tparam[opt] string origin
-- @tparam[opt] string by
-- @treturn table of gateway.store.writing
function _M.run(self, items, origin, by)
    local db, by_kind, packing = self.db, self.by_kind, self.packing
    local counts = {}
    -- By kind: another service does not move every route, which would change it.
    for _, item in ipairs(items) do
        local count = (counts[item.kind] or 0) + 1
        counts[item.kind], item.sequence = count, count
    end
    if filling.is_empty(db, self.layouts) then
        return filling.without_references(db, function()
            return writing.replace(self, origin, by, function(since)
                local image = self.on_filling and self.on_filling(since)
                return filling.make(db, by_kind, items, { packing = packing, image = image })
            end)
        end)
    end
    -- Without a savepoint, whose journal SQLite goes through again with each deletion.
    return writing.replace(self, origin, by, function(since)
        return transaction.make(db, by_kind, since.revision, items, self.layouts, packing)
    end)
end

-- What was expected of the store is not so: all of the file is to be checked.
local function refuse(kind, id)
    error({ refused = { err = "changed", kind = kind, field = "id", value = id } }, 0)
end

-- Takes those that move out of the way of others.
local function take_out(db, moves)
    for _, move in ipairs(moves) do
        local row = db:row(format("SELECT sequence FROM e_%s WHERE id = ?", move.kind), move.move)
        move.from = -(row or refuse(move.kind, move.move))[1]
        local sql = format("UPDATE e_%s SET sequence = ? WHERE sequence = ?", move.kind)
        db:run(sql, move.from, row[1])
    end
end

-- Puts them where they are to be. The last place of all.
local function put_back(db, moves, revision)
    local last = 0
    for _, move in ipairs(moves) do
        local sql = "UPDATE e_%s SET sequence = ?, revision = ? WHERE sequence = ?"
        db:run(format(sql, move.kind), move.sequence, revision, move.from)
        last = math.max(last, move.sequence)
    end
    db:run("UPDATE meta SET sequence = ? WHERE sequence < ?", last, last)
end

-- Whether those that were put had the id and the name that they were to have.
local function check_put(changes, made)
    for i, change in ipairs(changes) do
        local it = made[i]
        if change.put and (it.old ~= nil) ~= change.is_there then
            refuse(change.kind, change.id)
        end
        for at, column in ipairs(change.put and it.old and it.of.columns or {}) do
            -- By the name others may have referred to it; the store has only the id.
            if column.is_name and it.old[OWN + at] ~= it.values[at] then
                refuse(change.kind, change.id)
            end
        end
    end
end

-- Whether nothing went but what was to: what refers to something by cascade would go with it.
local function check_gone(db, revision, deletions)
    local row = db:row("SELECT count(*) FROM gone WHERE revision = ?", revision)
    if row[1] ~= deletions then
        refuse("gone", tostring(row[1]))
    end
end

-- Calls fn with what changes had and have in a column.
local function each_value(made, kind, is_it, fn)
    for _, it in ipairs(made) do
        for at, column in ipairs(it.of.kind == kind and it.of.columns or {}) do
            local old = it.old and it.old[OWN + at]
            local now = it.values and it.values[at]
            if is_it(column) and old ~= now then
                fn(old)
                fn(now)
            end
        end
    end
end

local function is_disabled(text)
    return text ~= nil and string.find(text, '"enabled":false', 1, true) ~= nil
end

-- Who is disabled needs no name, which is in no column.
local function check_disabled(made, kind)
    for _, it in ipairs(made) do
        local is_it = it.of.kind == kind and is_disabled(it.put)
        if it.of.kind == kind and is_it ~= is_disabled(it.old and it.old[OWN]) then
            refuse(kind, it.id)
        end
    end
end

-- Whether hosts of the changed entities that need a name have it, and no others: whoever checks the
-- whole file resolves them.
local function check_names(self, made)
    local of, hosts = self.by_kind.names, {}
    for _, user in ipairs(of and of.users or {}) do
        check_disabled(made, user.kind)
        each_value(made, user.kind, function(column)
            return column.column == user.column
        end, function(value)
            local host = value and user.up_to and address.split(value) or value
            hosts[#hosts + 1] = host and not address.literal(host) and host or nil
        end)
        each_value(made, user.unless, function(column)
            return column.is_name
        end, function(value)
            hosts[#hosts + 1] = value
        end)
    end
    for _, host in ipairs(hosts) do
        if reading.needs(self.db, self.by_kind, of, host) ~= reading.has(self.db, of, host) then
            refuse(of.kind, host)
        end
    end
end

--- Makes the changes that lead from one file to the next (gateway.config.reuse). Refused where the
-- store is not what they were made for, or where they may not be all that the file asks for:
-- "changed", or what a transaction is refused with. Then all of it is to be checked.
-- @tparam table self store
-- @tparam table sent `before`, the origin that the store has; `revision`, at which it was read for
-- the changes, nil where it was not; `origin`, the next one; `changes`:
-- upserts with `is_there`: whether there is one with this id; deletions, each of one that is there;
-- `{ kind =, move = id, sequence = }` of one that stays as it is
-- @tparam[opt] string by
-- @treturn table of gateway.store.writing
function _M.patch(self, sent, by)
    local db, changes, moves, deletions = self.db, {}, {}, 0
    for _, change in ipairs(sent.changes) do
        local into = change.move and moves or changes
        into[#into + 1] = change
        deletions = deletions + (change.delete and 1 or 0)
    end
    return writing.replace(self, sent.origin, by, function(since)
        -- Between two times that a file is live another one may have been, with other ids.
        local is_read = sent.revision == nil or sent.revision == since.revision
        if since.origin ~= sent.before or not is_read then
            refuse("origin", tostring(since.origin))
        end
        take_out(db, moves)
        local revision, made, cleared =
            transaction.make(db, self.by_kind, since.revision, changes, nil, self.packing)
        -- a file that refers to what is not there is wrong
        if cleared and cleared > 0 then
            refuse("references", tostring(cleared))
        end
        check_put(changes, made)
        if revision == since.revision and #moves > 0 then
            revision = revision + 1
            db:run("UPDATE meta SET revision = ?", revision)
        end
        put_back(db, moves, revision)
        if revision > since.revision then
            check_gone(db, revision, deletions)
        end
        check_names(self, made)
        return revision
    end)
end

return _M
