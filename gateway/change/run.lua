--- Changes of entities by people and programs: operations as Kong's Admin API has them, all of them
-- made or none (gateway.writer.queue).
--
-- What an operation has to know of the store it reads, and has the transaction see to it that it is
-- still so. A race that is lost is run again.
-- @module gateway.change.run

local drafts = require("gateway.change.draft")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local expiry = require("gateway.change.expiry")
local garbage_collector = require("sluice.garbage_collector")
local hosts = require("gateway.upstream.hosts")
local operations = require("gateway.change.operations")
local queue = require("gateway.writer.queue")
local refusals = require("gateway.change.refusals")
local long_patterns = require("gateway.entities.long_patterns")
local route_pairs = require("gateway.config.route_pairs")
local vaults = require("gateway.change.vaults")

-- How often operations are tried that others come before: whoever loses, another has won.
local MAX_TRIES = 100
-- Operations that are run without giving others a turn.
local FEW = 20
-- How long many wait for others who are many.
local TURN_SECONDS = 10

local _M = {}

-- A pause of few.
local function go_on() end

-- A pause of many, which ends them where nobody waits any more.
local function turns(run)
    local pause, is_left = garbage_collector.turns(), run.is_left
    return not is_left and pause
        or function()
            pause()
            if is_left() then
                refusals.throw(refusals.CLIENT_LEFT)
            end
        end
end

-- Names that are used from now on are put with them.
local function add_names(run, pause)
    local names, upstreams = hosts.needed(run.draft.changes, pause)
    for _, entity in ipairs(names) do
        run.draft:put_missing("names", entity)
    end
    for _, row in ipairs(upstreams) do
        run.draft:put_missing("upstreams", entity_text.decode(row.text), row.revision)
    end
end

local function prepare(run, list, pause)
    for i, operation in ipairs(list) do
        run.at = i
        local status, entity = operations.run(run, operation)
        run.results[i] = { status = status, kind = operation.kind, entity = entity }
        if pause then
            pause()
        end
    end
    run.at = nil
    return true
end

-- Many are checked in turns with other requests.
local function prepare_in_turns(run, list)
    if #list <= FEW then
        return prepare(run, list)
    elseif not garbage_collector.enter(TURN_SECONDS) then
        local message = "waited %d seconds for other checks"
        refusals.throw(refusals.of({ err = "busy", message = message:format(TURN_SECONDS) }))
    end
    -- The collector goes on: most of this time is spent waiting for the store.
    local ok, thrown = pcall(prepare, run, list, turns(run))
    garbage_collector.leave()
    if not ok then
        error(thrown, 0)
    end
    return true
end

-- The change that an error is about.
local function change_of(run, err)
    for _, change in ipairs(run.draft.changes) do
        if change.kind == err.kind and (change.id == err.id or change.id == err.value) then
            return change
        end
    end
    return nil
end

-- Whether another try may have another end: what was read has changed, or another has made an
-- entity of this name.
local function is_lost_race(change, err)
    if not change then
        return err.err == "changed"
    elseif err.err == "changed" then
        return change.if_revision ~= 0 or change.is_upsert
    elseif err.err == "unique violation" and change.is_named then
        local name = entities.get(change.kind).endpoint_key
        return (", " .. err.field .. ","):find(", " .. name .. ",", 1, true) ~= nil
    end
    return false
end

-- The kind that a field refers to, and whether by a list of ids.
local function reference_of(kind, name)
    for _, field in ipairs(entities.foreign(kind)) do
        if field.name == name then
            return field.reference, false
        end
    end
    for _, list in ipairs(entities.id_lists(kind)) do
        if list.name == name then
            return list.reference, true
        end
    end
    return nil
end

-- An operation that deletes what an earlier one refers to is to blame, whichever of the two the
-- store looks at first: its change, and the error of that. Nil: there is none.
local function blame_deletion(run, change, err)
    local reference, by_list = reference_of(err.kind, err.field)
    local deletion = reference and change_of(run, { kind = reference, id = err.value })
    if not (deletion and deletion.delete and deletion.operation > change.operation) then
        return nil
    end
    return deletion,
        {
            err = "referenced",
            kind = reference,
            value = err.value,
            by = err.kind,
            by_id = err.id,
            by_list = by_list,
        }
end

local function refusal_of(run, list, change, err)
    if err.err == "reference missing" and change and change.operation then
        local deletion, instead = blame_deletion(run, change, err)
        change, err = deletion or change, instead or err
    end
    local operation = change and list[change.operation]
    run.at = change and change.operation
    if err.err == "changed" and change and change.if_revision == 0 then
        return refusals.known_id(change.id)
    elseif err.err == "reference missing" and operation and operation.parent then
        if operation.parent.field == err.field then
            return refusals.NOT_FOUND
        end
    end
    return refusals.of(err, change and change.put)
end

-- Dates that the store has kept.
local function take_dates(run, dates, pause)
    for i, change in ipairs(dates and run.draft.changes or {}) do
        local kept = dates[i]
        if kept and change.put then
            change.put.created_at = kept[1] or nil
            change.put.updated_at = kept[2] or nil
        end
        pause()
    end
end

local function warn(run)
    for _, of in ipairs(run.warnings) do
        ngx.log(ngx.WARN, of.kind, " '", of.entity.id, "': ", of.field, ": ", of.message)
    end
end

-- What operations come to that have changed nothing.
local function unchanged(run, gone)
    local revision = queue.state().revision
    return { revision = revision, results = run.results, changes = run.draft.changes, gone = gone }
end

local function try(run, list)
    prepare_in_turns(run, list)
    vaults.check(run)
    local pause = #list > FEW and garbage_collector.turns() or go_on
    if not run.is_dry_run then
        add_names(run, pause)
    end
    local changes = run.draft.changes
    if #changes == 0 then
        return unchanged(run, {})
    end
    local done, err = queue.transaction(changes, {
        by = run.by,
        at_revision = run.at_revision,
        is_dry_run = run.is_dry_run,
    })
    if not done and err.err == "dry run" then
        return unchanged(run, err.gone)
    elseif done then
        take_dates(run, done.dates, pause)
        expiry.note_changes(changes)
        warn(run)
        return { revision = done.revision, results = run.results }
    end
    local change = change_of(run, err)
    if run.tries < MAX_TRIES and is_lost_race(change, err) then
        return nil
    end
    refusals.throw(refusal_of(run, list, change, err))
end

--- Runs operations, all or none; each sees what those before it have made. Yields; live on every
-- worker when it returns.
-- @tparam table live what gateway.admin is given
-- @tparam {table,...} list of operations: `{ method = "POST", "PUT", "PATCH" or "DELETE", kind =,
-- key = id or name, parent = { kind =, key =, field = of the child }, value = table, is_form =
-- whether the value's leaves are texts }`. A POST has no key; a DELETE without one is of all that
-- the parent has. What joins two entities has the one as its parent, the other's key as its own.
-- Or `{ method = "UPSERT", kind =, value = what gateway.config.collect found right, parent = {
-- field =, operation = one before it } }`, which get their `id`, their `change`: "created",
-- "changed" or "unchanged", and the text `before` it.
-- @tparam number size bytes that they came in, for what they may cost
-- @tparam string by who, for the history
-- @tparam[opt] boolean is_dry_run whether nothing is to be changed: the store tries it, and takes
-- it back; addresses of names are not looked up
-- @tparam[opt] function is_left whether nobody waits any more, while nothing is made yet
-- @treturn table|nil `{ revision =, results = array of { status = 200, 201 or 204, kind =,
-- entity = } }`; where nothing was changed, also `changes` of the draft and `gone`, `{ kind =, id =
-- }` of all that would be deleted
-- @treturn nil|table a refusal of gateway.change.refusals
-- @treturn nil|number the place of the operation that is to blame, where one is
-- @phases content, timer
function _M.run(live, list, size, by, is_dry_run, is_left)
    for tries = 1, MAX_TRIES do
        local run = {
            live = live,
            by = by,
            draft = drafts.new(live.read),
            pairs = route_pairs.new(size),
            patterns = long_patterns.new(),
            results = {},
            warnings = {},
            again = {},
            is_dry_run = is_dry_run,
            is_left = is_left,
            tries = tries,
        }
        local ok, done = pcall(try, run, list)
        if ok and done then
            return done
        elseif not ok then
            return nil, refusals.thrown(done), run.at
        end
    end
end

return _M
