--- Triggers of a store: those of the Sluice that opens it, whoever has made the file.
-- @module gateway.store.triggers

local _M = {}

--- Makes a trigger, or puts it into the place of one of that name that says something else. In the
-- caller's transaction.
-- @tparam table db connection
-- @tparam string name
-- @tparam string body from AFTER on
function _M.put(db, name, body)
    local sql = ("CREATE TRIGGER %s %s"):format(name, body)
    local found = db:row("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?", name)
    if found and found[1] == sql then
        return
    elseif found then
        db:run("DROP TRIGGER " .. name)
    end
    db:run(sql)
end

return _M
