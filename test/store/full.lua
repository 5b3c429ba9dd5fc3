--- Fills a small file system with a store, and says how that went.

local database = require("gateway.store.database")
local entity_text = require("gateway.store.entity_text")
local schemas = require("test.store.schemas")

local path = arg[1]
local ballast = path .. ".ballast"
local file = assert(io.open(ballast, "wb"))
file:write(("x"):rep(100000))
file:close()
local store = assert(database.open(path, { layouts = schemas.layouts }))

local function add(i)
    local entity = { id = "e" .. i, name = "e" .. i, fill = ("x"):rep(3000) }
    return store:transaction({ { kind = "parents", put = entity_text.encode(entity) } })
end

local count = 0
local done, err = add(1)
while done do
    count = count + 1
    done, err = add(count + 1)
end
print(err.err)

local rows = store:list("parents", { size = 1000 })
print(#rows == count and store:check() and "all there" or "lost")

-- To free room takes room, for the log.
os.remove(ballast)
print(store:transaction({ { kind = "parents", delete = "e1" } }) and "goes on" or "stands still")
store:close()
