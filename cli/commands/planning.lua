--- What a command is about to change, or has: how a plan of gateway.plan is shown, and the question
-- before entities are deleted.

local cjson = require("cjson")
local console = require("cli.terminal.console")
local entities = require("gateway.entities")
local hint = require("cli.terminal.hint")
local is_equal = require("gateway.schema.equal")
local items = require("gateway.config.items")
local known_ids = require("gateway.plan.known_ids")
local named_plan = require("cli.commands.named_plan")
local options = require("cli.options")
local origins = require("gateway.config.origin")
local saved = require("cli.instance.saved")
local signal = require("posix.signal")
local sources = require("gateway.plan.sources")
local store = require("cli.instance.store")
local unistd = require("posix.unistd")
local values = require("cli.options.values")

local _M = {}

--- What stands before an entity, by its change.
_M.SIGNS = { created = "+", changed = "~", deleted = "-" }

local NULL = cjson.null
-- What goes is named first.
local ORDER = { "deleted", "changed", "created" }
local COUNTED = { "created", "changed", "deleted", "unchanged" }
-- Changed entities of a plan that is not asked for; --dry-run shows all.
local MAX_SHOWN = 200
-- Entities of a file that a start or a reload compares with the store.
local MAX_COMPARED = 200000
local NO_CHANGES = '{"changed":0,"created":0,"deleted":0,"entities":[]}'
-- Bytes of a value, and of a setting.
local MAX_VALUE, MAX_SETTING = 60, 200

local function singular(kind)
    return (kind:gsub("s$", ""))
end

--- An entity with its kind, name and owners: `plugin NAME on route web`.
-- @tparam table entity of a plan
-- @treturn string
function _M.label(entity)
    local owners = {}
    for i, owner in ipairs(entity.owners or {}) do
        owners[i] = ("%s %s"):format(singular(owner.kind), owner.name)
    end
    local label = ("%s %s"):format(
        singular(entity.kind),
        entity.name ~= NULL and entity.name or entity.id
    )
    if #owners == 0 then
        return label
    end
    local word = entity.kind == "plugins" and "on" or "of"
    return ("%s %s %s"):format(label, word, table.concat(owners, ", "))
end

local function value_of(value)
    if value == NULL or value == nil then
        return "(unset)"
    elseif type(value) ~= "string" or value == "" then
        value = cjson.encode(value):gsub("\\/", "/")
    end
    return value
end

-- Certificates, and values that differ behind their end, are not worth a line.
local function is_shown(old, new, most)
    for _, text in ipairs({ old, new }) do
        if text:find("\n", 1, true) or #text > most then
            return false
        end
    end
    return true
end

-- Times of the store are seconds since 1970: `expires_at` and others whose names end so.
local function time_of(field, value)
    local is_time = field:find("_at$") and type(value) == "number"
    return is_time and os.date("!%Y-%m-%d %H:%M:%S UTC", value) or value
end

local function field_line(field)
    if field.secret then
        return field.field .. " changed"
    end
    local old = value_of(time_of(field.field, field.old))
    local new = value_of(time_of(field.field, field.new))
    if not is_shown(old, new, MAX_VALUE) then
        return field.field .. " changed"
    end
    return ("%s %s -> %s"):format(field.field, old, new)
end

local function add_entity(lines, entity)
    local line = ("%s %s"):format(_M.SIGNS[entity.change], _M.label(entity))
    local fields = entity.fields or {}
    if #fields == 1 then
        line = ("%s: %s"):format(line, field_line(fields[1]))
    end
    lines[#lines + 1] = line
    for _, field in ipairs(#fields > 1 and fields or {}) do
        lines[#lines + 1] = "    " .. field_line(field)
    end
end

-- Both values of a setting that changes, as users write them.
local function setting_texts(field)
    local option = options.by_name[field.field]
    return values.text(option, field.old), values.text(option, field.new)
end

local function setting_line(field)
    local old, new = setting_texts(field)
    if field.secret or not is_shown(old, new, MAX_SETTING) then
        return ("~ setting %s: changed"):format(field.field)
    end
    return ("~ setting %s: %s -> %s"):format(field.field, old, new)
end

-- A plan as lines: the settings that change; what is deleted, changed and created, in this order.
-- `most`: entities to show, all when absent.
local function lines_of(plan, most)
    local lines, count = {}, 0
    for i, field in ipairs(plan.settings or {}) do
        lines[i] = setting_line(field)
    end
    local total = plan.created + plan.changed + plan.deleted
    for _, change in ipairs(ORDER) do
        for _, entity in ipairs(plan.entities) do
            if entity.change == change and count < (most or math.huge) then
                count = count + 1
                add_entity(lines, entity)
            end
        end
    end
    if count < total then
        lines[#lines + 1] = ("... and %d more"):format(total - count)
    end
    return lines
end

--- A plan of what a declarative file in the place of the store changes.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam table found the file, of cli.preflight
-- @tparam[opt] boolean is_first there may be no store yet
-- @treturn table|nil plan
-- @treturn nil|string the reason
function _M.of_file(instance, settings, found, is_first)
    return store.plan(settings, instance, function(held)
        local list = _M.items(settings, found, held, {})
        return sources.replacement(held, found.plugins, list, found.snapshot.select_tags)
    end, is_first)
end

--- The items of a file. Where the store is what counts, entities keep the ids that they have there;
-- where a file is, they have the same on each node.
-- @tparam table settings resolved settings
-- @tparam table found the file, of cli.preflight
-- @tparam table held the store
-- @tparam table addresses of gateway.config.items
-- @treturn {table,...}
function _M.items(settings, found, held, addresses)
    local snapshot = found.snapshot
    if origins.is_of_store(settings) then
        snapshot = found.parse(known_ids.finder(held)) or snapshot
    end
    return (items.of(snapshot, addresses))
end

local UNTAGGED = "%s has `_info.select_tags` (%s), but would delete %d entities without these tags"

--- What to say of a file that has `_info.select_tags`, where it would delete entities without them,
-- which decK leaves alone.
-- @tparam table plan
-- @tparam table found the file, of cli.preflight
-- @tparam string path
-- @treturn string|nil
function _M.untagged(plan, found, path)
    if (plan.untagged or 0) > 0 then
        local tags = table.concat(found.snapshot.select_tags, ", ")
        return UNTAGGED:format(path, tags, plan.untagged)
    end
    return nil
end

--- Whether it changes nothing.
-- @tparam table plan
-- @treturn boolean
function _M.is_empty(plan)
    return plan.created + plan.changed + plan.deleted == 0
end

-- How many entities of a plan are created, changed, deleted and unchanged, without those of which
-- there is none.
local function counts(plan)
    local settings = #(plan.settings or {})
    local is_same = _M.is_empty(plan) and settings == 0 and not plan.ids_changed
    local parts = { is_same and "no changes" or nil }
    for _, name in ipairs(COUNTED) do
        if (plan[name] or 0) > 0 then
            parts[#parts + 1] = ("%d %s"):format(plan[name], name)
        end
    end
    if plan.ids_changed then
        parts[#parts + 1] = ("%d id%s changed"):format(
            plan.ids_changed,
            plan.ids_changed == 1 and "" or "s"
        )
    end
    if settings > 0 then
        parts[#parts + 1] = ("%d setting%s changed"):format(settings, settings == 1 and "" or "s")
    end
    return table.concat(parts, ", ")
end

-- The entities of a snapshot.
local function count(snapshot)
    local total = 0
    for _, kind in ipairs(entities.kinds) do
        total = total + #snapshot[kind]
    end
    return total
end

-- The settings that change. Of certificates and keys, also of those given as text, the files are
-- compared, which are no secrets; the text of a declarative file is compared by its entities.
local function changed_settings(old, settings)
    local list = {}
    settings = saved.settings(settings)
    for _, option in ipairs(options.list) do
        local before, after = old[option.name], settings[option.name]
        -- Where none is given, a start takes one.
        local is_taken = option.name == "image_dir" and after == ""
        -- Settings of an older version lack some.
        is_taken = is_taken or (before == nil and values.is_unset(after))
        if not is_taken and not is_equal(before, after) then
            local field = { field = option.name, old = before, new = after }
            if option.type == "secret" then
                field = { field = option.name, secret = true }
            end
            list[#list + 1] = field
        elseif option.holds and not is_equal(old[option.holds], settings[option.holds]) then
            list[#list + 1] = { field = option.name, secret = true }
        end
    end
    return list
end

-- Adds the settings that change to a plan.
local function add_settings(plan, old, settings)
    local list = old and changed_settings(old, settings) or {}
    if #list > 0 then
        plan.settings = list
        plan.text = ('%s,"settings":%s}'):format(plan.text:sub(1, -2), cjson.encode(list))
    end
end

local CHANGED = "the store of this prefix has changes"

-- Whether a store differs from a file by ids alone.
local function differs_by_ids(instance, settings, found)
    local plan = named_plan.of(instance, settings, found)
    return plan ~= nil and _M.is_empty(plan)
end

--- What tells whether a file has what the store has, and nothing else.
-- @tparam table instance cli.instance
-- @treturn function `(settings, found)` of cli.preflight -> nil, or the reason why not
function _M.comparer(instance)
    return function(settings, found)
        if count(found.snapshot) > MAX_COMPARED then
            return CHANGED .. ", and the file is too large to compare"
        end
        local plan, err = _M.of_file(instance, settings, found)
        if not plan then
            return ("%s, which cannot be compared with the file: %s"):format(CHANGED, err)
        elseif _M.is_empty(plan) then
            return nil
        elseif differs_by_ids(instance, settings, found) then
            return "the store of this prefix has the contents of the file under other ids"
        end
        local line = "%s that are not in the file, as `sluice diff %s` shows"
        return line:format(CHANGED, settings.file)
    end
end

--- Whether a file that was accepted, as the store has the same, still has it.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam table found the file, of cli.preflight
-- @treturn boolean
function _M.is_still_same(instance, settings, found)
    return not found.same_as
        or store.revision(settings, instance) == found.same_as
        or not _M.comparer(instance)(settings, found)
end

--- What a start with a file or its reload changes, and whether that is to be.
-- @tparam table instance cli.instance
-- @tparam table settings resolved settings
-- @tparam table found the file, of cli.preflight; without a snapshot no entity changes
-- @tparam table|nil old the settings that are live
-- @tparam table arguments `dry_run`, `yes`, `json`
-- @treturn table|nil plan for `report_load`
-- @treturn number|nil exit code, where that is all
function _M.before_load(instance, settings, found, old, arguments)
    local plan, err = cjson.decode(NO_CHANGES), nil
    plan.text = NO_CHANGES
    if found.snapshot and count(found.snapshot) > MAX_COMPARED then
        console.complain({ "warning: what changes is not shown: the file is too large" })
    elseif found.snapshot then
        plan, err = _M.of_file(instance, settings, found, true)
        plan = plan and named_plan.beside_ids(instance, settings, found, plan)
    end
    if not plan and arguments.dry_run then
        return nil, console.fail(err)
    elseif not plan then
        console.complain({ "warning: what changes is not shown: " .. err })
        return nil
    end
    add_settings(plan, old, settings)
    return plan, _M.settle(plan, nil, arguments)
end

--- Prints what a start or a reload has changed.
-- @tparam table|nil plan of `before_load`
-- @tparam table arguments `json`
function _M.report_load(plan, arguments)
    local is_wanted = plan and (arguments.json or plan.settings or plan.ids_changed)
    if is_wanted or (plan and not _M.is_empty(plan)) then
        _M.report(plan, arguments)
    end
end

-- What decides who reaches it, as whom it answers, and what it serves.
local OF_ACCESS = {
    admin_client_ca = true,
    admin_listen = true,
    admin_read_token = true,
    admin_ssl_cert = true,
    admin_token = true,
    admin_token_file = true,
    file = true,
    proxy_listen = true,
    ssl_cert = true,
    status_listen = true,
    status_ssl_cert = true,
}

-- A setting of the last start, in few words.
local function former_text(field, settings)
    local now = settings[field.field]
    if field.secret then
        return ("%s %s"):format(field.field, now == "" and "is no longer set" or "is another")
    end
    return ("%s %s -> %s"):format(field.field, setting_texts(field))
end

-- The flags of the last start, as they are typed.
local function former_flags(old, flags)
    local words = {}
    for _, option in ipairs(options.list) do
        local value = flags[option.name] and old[option.name]
        if option.name == "file" and value == "" then
            words[#words + 1] = "--no-file"
        elseif value ~= nil and option.name ~= "prefix" then
            local text = values.text(option, value)
            words[#words + 1] = options.flag(option)
            words[#words + 1] = options.is_secret(option) and "..." or hint.quoted(text)
        end
    end
    return words
end

--- Says what a start does otherwise than the last one, whose flags it does not know: what it opens,
-- and what those flags were.
-- @tparam table|nil old the settings of the last start
-- @tparam table|nil remembered what the last start was given (cli.settings)
-- @tparam table settings resolved settings
-- @tparam table given what this start is given; `is_supervised`: a service manager starts it, and
-- would a restart
function _M.warn_of_former(old, remembered, settings, given)
    local flags, texts = remembered and remembered.flags or {}, {}
    for _, field in ipairs(old and changed_settings(old, settings) or {}) do
        local name = field.field
        local is_wanted = OF_ACCESS[name] or (flags[name] and not given.flags[name])
        -- A file is named by whoever starts with one. Another version has more settings.
        if is_wanted and old[name] ~= nil and not (name == "file" and settings.file ~= "") then
            texts[#texts + 1] = former_text(field, settings)
        end
    end
    if #texts == 0 then
        return
    end
    local line = "warning: settings differ from the last start: " .. table.concat(texts, "; ")
    local words = former_flags(old, flags)
    if #words > 0 then
        line = ("%s; its flags were %s"):format(line, table.concat(words, " "))
    end
    local remark = "; `sluice restart` in place of stop and start keeps settings"
    console.complain({ line .. (given.is_supervised and "" or remark) })
end

--- Prints a plan of which nothing is done.
-- @tparam table plan with its `text` in JSON
-- @tparam table arguments `json`
-- @tparam[opt] string prefix of the line with the counts
-- @treturn number exit code
function _M.show(plan, arguments, prefix)
    if arguments.json then
        console.say_json(plan.text)
        return console.DONE
    end
    console.print_lines(lines_of(plan))
    console.say("%s%s", prefix or "", counts(plan))
    return console.DONE
end

local function is_terminal()
    return unistd.isatty(unistd.STDIN_FILENO) == 1 and unistd.isatty(unistd.STDERR_FILENO) == 1
end

-- Asks a question and reads a line; Ctrl-C ends the reading.
local function ask(question)
    local is_interrupted = false
    signal.signal(signal.SIGINT, function()
        is_interrupted = true
    end)
    console.write_error(question)
    local answer = not is_interrupted and io.read("*l") or nil
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return answer, is_interrupted
end

-- Says what a plan deletes and asks whether that is to be, on a terminal: without one, or with
-- --yes, it is. Where the file comes by a pipe nobody can answer, and its writer may have failed.
local function confirm(plan, arguments)
    if plan.deleted > 0 and arguments.path == "-" and not arguments.yes then
        local line = "standard input lacks %d entities of the store; --yes deletes them"
        return false, console.fail({ line:format(plan.deleted), "nothing was changed" })
    elseif plan.deleted == 0 or arguments.yes or not is_terminal() then
        return true
    end
    local many = plan.deleted == 1 and "entity" or "entities"
    for _, line in ipairs(lines_of(plan, MAX_SHOWN)) do
        console.write_error(console.one_line(line) .. "\n")
    end
    plan.is_shown = not arguments.json
    local question = "delete %d %s? [y/N] "
    local answer, is_interrupted = ask(question:format(plan.deleted, many))
    if answer and answer:lower():find("^%s*y") then
        return true
    end
    console.write_error(is_interrupted and "\n" or "")
    console.complain({ "nothing was changed" })
    return false, is_interrupted and console.INTERRUPTED or console.FAILED
end

--- What comes before a plan is carried out: it is shown where that is all, or it is asked.
-- @tparam table|nil plan with its `text` in JSON
-- @tparam string|nil err why there is none
-- @tparam table arguments `dry_run`, `yes`, `json`
-- @treturn number|nil exit code; nil: it is to be carried out
function _M.settle(plan, err, arguments)
    if not plan then
        return console.fail(err)
    elseif arguments.dry_run then
        return _M.show(plan, arguments, "dry run: ")
    end
    local is_wanted, code = confirm(plan, arguments)
    return not is_wanted and code or nil
end

--- Prints a plan that was carried out, unless the question before it did.
-- @tparam table plan with its `text` in JSON
-- @tparam table arguments `json`
-- @tparam[opt] number revision that it led to
function _M.report(plan, arguments, revision)
    if arguments.json then
        local last = revision and (',"revision":%d}'):format(revision) or "}"
        console.say_json(plan.text:sub(1, -2) .. last)
        return
    end
    console.print_lines(plan.is_shown and {} or lines_of(plan, MAX_SHOWN))
    local revision_text = revision and (": revision %d"):format(revision) or ""
    console.say("%s%s", counts(plan), revision_text)
end

return _M
