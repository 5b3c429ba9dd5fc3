--- Vaults, where entities refer to them: what is checked with a vault stays what it was checked as.
--
-- An entity notes what the names of a vault's variables begin with (gateway.config.references), and
-- is served with that. So a vault may be changed or deleted as long as this makes nothing else of
-- any reference; who refers to it is to be changed first, or in the same batch.
-- @module gateway.change.vaults

local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local references = require("gateway.config.references")
local refusals = require("gateway.change.refusals")

local must = refusals.must

-- Entities that are read at a time.
local PAGE = 1000

local _M = {}

local function begin_of(vault)
    return type(vault.config) == "table" and vault.config.prefix or ""
end

-- What references are looked up with: `(prefix)` -> what the names of a vault's variables begin
-- with; nil: there is no such vault.
local function finder(find)
    local known = {}
    return function(prefix)
        if known[prefix] == nil then
            local vault = find(prefix)
            known[prefix] = vault and begin_of(vault) or false
        end
        return known[prefix] or nil
    end
end

--- Makes what references are looked up with in the store.
-- @tparam function read of gateway.writer.role
-- @treturn function `(prefix)` -> what the names of a vault's variables begin with; nil: there is
-- no such vault, or it cannot be read. Yields
function _M.finder_in_store(read)
    return finder(function(prefix)
        local row = read("named", "vaults", prefix)
        return row and entity_text.decode(row.text)
    end)
end

--- What the names of variables begin with, of all vaults in the store. Yields.
-- @tparam function read of gateway.writer.role
-- @treturn table|nil prefix -> begin
-- @treturn nil|table error
function _M.begins(read)
    local begins, offset = {}, nil
    repeat
        local rows, next_offset = read("list", "vaults", { size = PAGE, offset = offset })
        if not rows then
            return nil, next_offset
        end
        for _, row in ipairs(rows) do
            local vault = entity_text.decode(row.text)
            begins[vault.prefix] = begin_of(vault)
        end
        offset = next_offset
    until not offset
    return begins
end

-- The vault of a prefix as a run leaves it.
local function find(run, prefix)
    return must(run.draft:by_name("vaults", prefix))
end

--- Makes what references are looked up with in a run.
-- @tparam table run of gateway.change.operations
-- @treturn function as of `finder_in_store`
function _M.finder_in_run(run)
    return finder(function(prefix)
        return (find(run, prefix))
    end)
end

-- Kinds whose entities may have references.
local function referring_kinds()
    local kinds = {}
    for _, kind in ipairs(entities.kinds) do
        local definition = entities.get(kind)
        local refers = definition.subschema_key ~= nil
        for _, entry in ipairs(definition.fields) do
            local _, field = next(entry)
            refers = refers or field.referenceable
        end
        kinds[#kinds + 1] = refers and kind or nil
    end
    return kinds
end

-- Whether an entity of the store that stays as it is refers to what is not there any more.
local function is_broken(run, kind, row, prefix, begin)
    if run.draft:knows(kind, row.id) or not references.has(row.text, prefix) then
        return false
    end
    local noted = entity_text.decode(row.text)._vaults
    return noted ~= nil and noted[prefix] ~= nil and noted[prefix] ~= begin
end

local function check_rows(run, kind, prefix, begin)
    local offset
    repeat
        local rows, next_offset = run.live.read("list", kind, { size = PAGE, offset = offset })
        for _, row in ipairs(must(rows, next_offset)) do
            if is_broken(run, kind, row, prefix, begin) then
                refusals.throw(refusals.of({ err = "referenced", kind = "vaults", by = kind }))
            end
        end
        offset = next_offset
    until not offset
end

-- Where a vault becomes another, or goes.
local function check_vault(run, change)
    -- Whoever comes between begins anew.
    run.at_revision = run.at_revision or must(run.live.read("revision")).revision
    local row, err = run.live.read("get", "vaults", change.id)
    if not row and err.err ~= "not found" then
        must(row, err)
    elseif not row or row.id ~= change.id then
        return
    end
    local old, now = entity_text.decode(row.text), change.put
    if now and now.prefix == old.prefix and begin_of(now) == begin_of(old) then
        return
    end
    local left = find(run, old.prefix)
    run.at = change.operation
    for _, kind in ipairs(referring_kinds()) do
        check_rows(run, kind, old.prefix, left and begin_of(left))
    end
    run.at = nil
end

-- Where an entity refers to vaults: they are to be what it was checked with.
local function check_referrer(run, change)
    for prefix, begin in pairs(change.put._vaults) do
        local vault, revision = find(run, prefix)
        if not vault or begin_of(vault) ~= begin then
            run.at = change.operation
            local message = "the vault with the prefix '%s', which it refers to, was deleted or "
                .. "changed"
            refusals.throw(refusals.invalid_field("@entity", message:format(prefix)))
        elseif revision then
            run.draft:put_missing("vaults", vault, revision)
        end
    end
end

--- Sees to it that every reference leads where it did when it was checked, at the end of a run.
-- Yields where there are references or vaults: a change of a vault reads all entities that might
-- refer to it. Sets `run.at_revision` where nothing may come between.
-- @tparam table run
function _M.check(run)
    local list = run.draft.changes
    for i = 1, #list do
        local change = list[i]
        if change.put and change.put._vaults then
            check_referrer(run, change)
        elseif change.kind == "vaults" and (change.delete or not change.lenient) then
            check_vault(run, change)
        end
    end
end

return _M
