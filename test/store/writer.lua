--- Writes to a store, one transaction after the other or some with one commit, and says which
--- revisions were answered, on a line each, and in the trace where there is one.
---
---     luajit writer.lua <path> <transactions> <a commit> <transactions before it is opened again>
---
--- Gives up after three refusals; with `STORE_DIES` it dies of the first. With `STORE_ALONE` a new
--- store is filled with the first transaction, by one that nobody reads beside.

local database = require("gateway.store.database")
local ffi = require("ffi")
local schemas = require("test.store.schemas")

ffi.cdef("void store_mark(const char *text);")

local path, count, together, reopen = arg[1], tonumber(arg[2]), tonumber(arg[3]), tonumber(arg[4])
local has_trace = os.getenv("SHIM_TRACE") ~= nil

local function say(text)
    io.write(text, "\n")
    io.flush()
    if has_trace then
        ffi.C.store_mark(text)
    end
end

local function open(is_alone)
    local store, err = database.open(path, { layouts = schemas.layouts, alone = is_alone })
    if not store then
        say("refused " .. err.err)
        os.exit(3)
    end
    return store
end

local is_alone = os.getenv("STORE_ALONE") ~= nil
local store = open(is_alone)
local last = store:revision().revision
say("opened " .. last)
local refused = 0
local made = 0
if is_alone and last == 0 then
    local done, err = store:replace(schemas.changes(1))
    if not done then
        say("refused " .. err.err)
        os.exit(4)
    end
    last, made = done.revision, 1
    say("answered " .. last)
    store:close()
    store = open()
end
while made < count and refused < 3 do
    local members = {}
    for i = 1, together do
        members[i] = schemas.changes(last + i)
    end
    local results, err = store:batch(members)
    if results then
        last, made = results[together].revision, made + together
        say("answered " .. last)
    else
        refused = refused + 1
        say("refused " .. err.err)
        if os.getenv("STORE_DIES") then
            os.exit(4)
        end
    end
    if reopen > 0 and made % reopen == 0 then
        store:close()
        store = open()
    end
end
store:close()
say("done")
