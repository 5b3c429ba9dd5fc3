--- Copies of a store in files of their own: a backup, a declarative configuration.
-- Each is written beside its name, synced, and then renamed.
-- @module gateway.store.copies

local entity_text = require("gateway.store.entity_text")
local files = require("gateway.store.files")
local lifetime = require("gateway.schema.lifetime")
local pages = require("gateway.store.pages")
local reading = require("gateway.store.reading")
local sqlite = require("gateway.store.sqlite")
local tables = require("gateway.store.tables")

-- Entities that are read at a time.
local PIECE = 10000

local _M = {}

local function refuse(word, reason)
    error({ word = word, reason = reason }, 0)
end

local function finish(path, temporary)
    local ok, err = files.sync_file(temporary)
    if ok then
        ok, err = os.rename(temporary, path)
    end
    if ok then
        ok, err = files.sync_folder(files.folder_of(path))
    end
    if not ok then
        refuse("cannot open", err)
    end
    return true
end

-- Runs `write(temporary)`, which throws, and gives the file its name.
local function make_file(path, write)
    if files.exists(path) then
        refuse("exists", path .. " already exists")
    end
    local temporary = path .. ".new"
    os.remove(temporary)
    local made, err = files.make_file(temporary)
    if not made then
        refuse("cannot open", err)
    end
    local ok, thrown = pcall(function()
        write(temporary)
        return finish(path, temporary)
    end)
    if not ok then
        os.remove(temporary)
        error(thrown, 0)
    end
    return true
end

-- Of the length that a digest has: to write one changes no page but that of `meta`.
local NO_DIGEST = ("0"):rep(16)

local function mark(db)
    db:run("UPDATE meta SET is_backup = 1")
    tables.set_digest(db, NO_DIGEST)
    tables.set_digest(db, pages.total(db))
end

--- Copies the database, with the mark of a backup and its digest.
-- @tparam table db connection, in no transaction
-- @tparam string path
-- @treturn boolean true; throws what gateway.store.failure knows
function _M.backup(db, path)
    return make_file(path, function(temporary)
        db:run("VACUUM INTO ?", temporary)
        local copy = sqlite.open(temporary)
        local ok, thrown = pcall(mark, copy)
        copy:close()
        if not ok then
            error(thrown, 0)
        end
    end)
end

-- An entity's text as a file has it.
local function as_file(of, text)
    if of.expiry and text:find('"expires_at":', 1, true) then
        local entity = entity_text.decode(text)
        lifetime.show(entity, os.time())
        text = entity_text.encode(entity)
    end
    return entity_text.as_file(text)
end

local function write_kind(db, of, put)
    local offset, separator
    repeat
        local page
        page, offset = reading.list(db, of, { size = PIECE, offset = offset })
        for _, row in ipairs(page) do
            put(separator or "\n")
            put(as_file(of, row.text))
            separator = ",\n"
        end
    until not offset
end

--- Writes every kind but those that stand in no export, in order of sequence, as JSON.
-- @tparam table db connection, in a transaction, so that all is of one moment
-- @tparam {table,...} layouts
-- @tparam string path
-- @treturn boolean true; throws what gateway.store.failure knows
function _M.export(db, layouts, path)
    return make_file(path, function(temporary)
        local file = assert(io.open(temporary, "wb"))
        local err
        local function put(text)
            local ok, why = file:write(text)
            err = err or (not ok and why or nil)
        end
        put('{"_format_version":"3.0","_transform":false')
        for _, of in ipairs(layouts) do
            if not (of.is_internal or of.no_export) then
                put(',\n"' .. of.kind .. '":[')
                write_kind(db, of, put)
                put("]")
            end
        end
        put("}\n")
        local closed, why = file:close()
        err = err or (not closed and why or nil)
        if err then
            refuse("disk error", path .. ": " .. err)
        end
    end)
end

return _M
