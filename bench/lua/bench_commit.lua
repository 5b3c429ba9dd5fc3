--- The least that a durable change can cost: one row, one commit, as the store's own is synced.

local clock = require("clock")
local sqlite = require("gateway.store.sqlite")

local _M = {}

--- Commits a row again and again. Blocks.
-- @tparam string path of a database, made where there is none
-- @tparam string text of the row
-- @tparam number count
-- @treturn {number,...} milliseconds of each
function _M.run(path, text, count)
    local file = assert(io.open(path, "ab"))
    file:close()
    local db = sqlite.open(path)
    db:row("PRAGMA journal_mode = WAL")
    db:run("PRAGMA synchronous = FULL")
    db:run("CREATE TABLE IF NOT EXISTS bare (id INTEGER PRIMARY KEY, text TEXT)")
    db:run("INSERT OR IGNORE INTO bare VALUES (1, ?)", text)
    local took = {}
    for i = 1, count do
        local begun = clock.now()
        db:run("BEGIN IMMEDIATE")
        db:run("UPDATE bare SET text = ? WHERE id = 1", text .. (" "):rep(i % 2))
        db:run("COMMIT")
        took[i] = (clock.now() - begun) * 1000
    end
    db:close()
    return took
end

return _M
