--- The commands about single entities, over the control socket. Each takes the parsed arguments and
-- a context and returns an exit code.

local cjson = require("cjson")
local console = require("cli.terminal.console")
local control = require("cli.instance.control")
local declarative = require("cli.commands.declarative")
local entities = require("gateway.entities")
local entity_rows = require("cli.commands.entity_rows")
local invocation = require("cli.commands.invocation")
local kind_names = require("cli.commands.kind")
local origins = require("gateway.config.origin")
local planning = require("cli.commands.planning")
local preflight = require("cli.instance.preflight")
local prefixes = require("cli.instance.prefix")
local refusal = require("cli.commands.refusal")
local sources = require("gateway.plan.sources")
local store = require("cli.instance.store")
local tables = require("cli.terminal.table")

local _M = {}

local DONE, WRONG_USE = console.DONE, console.WRONG_USE
local say, fail, print_lines = console.say, console.fail, console.print_lines

local NULL = cjson.null
local escape = kind_names.escape
-- Entities of a page, and operations of a batch: the most that the gateway takes.
local PAGE = 1000
-- A page of entities costs as much as so many that are asked for one by one.
local FEW = 50
local NOTHING_DELETED = "nothing was deleted"
local FILE_HISTORY = "no history: this instance is configured from a file"
local POSTED_HISTORY = "no history: this instance has no database (database = off)"
local TYPES = { json = "application/json", yaml = "application/yaml", yml = "application/yaml" }

-- A command that needs the kinds of entities: `run(instance, arguments, settings, registry)`.
local function on_entities(run)
    return invocation.on_running(function(instance, _, arguments, context)
        local ours, foreign = prefixes.new(instance):check(context.root)
        local settings = ours and instance:read_settings()
        if not settings then
            return fail(foreign or "cannot read the settings of " .. instance.prefix)
        end
        local problems = {}
        local registry = preflight.load_plugins(settings, problems)
        if not registry then
            return fail(problems)
        end
        return run(instance, arguments, settings, registry)
    end)
end

-- Asks for something that has to be there; nil, and lines that say why it is not.
local function ask(instance, method, target, value)
    local body = value and { type = "application/json", text = cjson.encode(value) }
    local status, answer, text = control.ask(instance.control, method, target, body)
    if status ~= 200 then
        return nil, refusal.lines(status, answer), status
    end
    return answer, text
end

-- Asks for one entity, as `ask` does. That of a group stands in an object of Kong's.
local function ask_one(instance, kind, path, name, reveals)
    local target = ("%s/%s?reveal=%d"):format(path, escape(name), reveals and 1 or 0)
    if kind ~= "consumer_groups" then
        return ask(instance, "GET", target)
    end
    local answer, text, status = ask(instance, "GET", target .. "&list_consumers=false")
    if not answer then
        return nil, text, status
    end
    return answer.consumer_group, text:match('^{"consumer_group":(.-),"plugins":%[')
end

-- All pages of a list: `keep(answer, text)` gets each. Nil, and lines that say why not.
local function each_page(instance, path, query, keep)
    local offset
    repeat
        local target = ("%s?size=%d%s"):format(path, PAGE, query)
        if offset then
            target = target .. "&offset=" .. escape(offset)
        end
        local answer, text, status = ask(instance, "GET", target)
        if not answer then
            return nil, text, status
        end
        keep(answer, text)
        offset = answer.offset
    until not offset
    return true
end

local function name_of(kind, entity)
    local definition = entities.get(kind)
    local name = not definition.has_secret_name and entity[definition.endpoint_key]
    return name and name ~= NULL and name or entity.id
end

-- The names of those that entities refer to; and the certificates among them, by id.
local function names_of(instance, references)
    local names, certificates = {}, {}
    for kind, ids in pairs(references) do
        local of_kind, path = {}, "/" .. entities.path_name(kind)
        names[kind] = of_kind
        local function keep(answer)
            for _, entity in ipairs(answer.data or (answer.id and { answer }) or {}) do
                local disabled = entity.enabled == false and " (disabled)" or ""
                of_kind[entity.id] = name_of(kind, entity) .. disabled
                certificates[entity.id] = kind == "certificates" and entity or nil
            end
        end
        if #ids > FEW then
            each_page(instance, path, "&reveal=0", keep)
        end
        -- One that is gone by now is shown by its id.
        for _, id in ipairs(#ids <= FEW and ids or {}) do
            keep(ask_one(instance, kind, path, id) or {})
        end
    end
    return names, certificates
end

local function print_table(rows)
    local left = {}
    for i = 1, #rows[1] do
        left[i] = true
    end
    print_lines(tables.lines(rows, { left = left, width = tables.terminal_width() }))
end

local function print_entities(instance, kind, list, reveals)
    local columns = entity_rows.columns(kind, reveals)
    local names, certificates = names_of(instance, entity_rows.references(columns, list))
    entity_rows.add_certificates(kind, list, certificates, os.time())
    print_table(entity_rows.rows(columns, list, names))
end

local function absent(found)
    local hint = found.path == "/plugins" and "; name a plugin by its id or instance_name" or ""
    local list, kind = found.path:match("^/(.-)/?([^/]+)$")
    local place = list == "" and "" or " in " .. list
    local name = console.one_line(found.name)
    return ("no %s named %s%s%s"):format(kind:gsub("s$", ""), name, place, hint)
end

-- JSON as it came, since numbers and empty lists do not survive being read.
local function print_json(texts)
    console.say_json(("[%s]"):format(table.concat(texts, ",")))
end

local function list_kinds(arguments)
    if arguments.json then
        console.say_json(cjson.encode(kind_names.names()))
    else
        print_lines(kind_names.names())
    end
    return DONE
end

--- get: a list of entities, or one; without a kind, the kinds.
_M.get = on_entities(function(instance, arguments)
    if not arguments.kind then
        return list_kinds(arguments)
    end
    local found, message = kind_names.read(arguments.kind)
    if not found then
        return fail(message, WRONG_USE)
    elseif found.name and arguments.name then
        return fail(("'%s' already names an entity"):format(arguments.kind), WRONG_USE)
    end
    local name = found.name or arguments.name
    if name and arguments.tags then
        return fail("--tags goes with a list, not with a name", WRONG_USE)
    end
    local query = "&reveal=" .. (arguments.reveal and 1 or 0)
    query = arguments.tags and query .. "&tags=" .. escape(arguments.tags) or query
    local list, texts = {}, {}
    local function keep(answer, text)
        for _, entity in ipairs(answer.data or { answer }) do
            list[#list + 1] = entity
        end
        -- Keys are sorted: the page's list comes first, and ends before what `next` is.
        local data = answer.data and text:match('^{"data":%[(.*)%],"next":') or text
        texts[#texts + 1] = data ~= "" and data or nil
    end
    local done, lines, status
    if name then
        done, lines, status = ask_one(instance, found.kind, found.path, name, arguments.reveal)
        if done then
            keep(done, lines)
        end
    else
        done, lines, status = each_page(instance, found.path, query, keep)
    end
    if not done then
        local missing = name and { path = found.path, name = name } or found.parent
        return fail(status == 404 and missing and absent(missing) or lines)
    elseif arguments.json then
        print_json(texts)
    elseif #list == 0 then
        say("no %s%s", found.path:sub(2), arguments.tags and " with these tags" or "")
    else
        print_entities(instance, found.kind, list, arguments.reveal)
    end
    return DONE
end)

-- What is named, in lists of `kind`, `path` and `name`: names in a list, or all as KIND/NAME. Nil,
-- and why it is nothing.
local function named(arguments)
    local first, message = kind_names.read(arguments.kind)
    if not first then
        return nil, message
    end
    local list = { first.name and first }
    for _, text in ipairs(arguments.names) do
        local found = { kind = first.kind, path = first.path, name = text }
        if first.name then
            found, message = kind_names.read(text)
        end
        if not found or not found.name then
            return nil, message or ("'%s' is not valid; expected KIND/NAME"):format(text)
        end
        list[#list + 1] = found
    end
    if #list == 0 then
        return nil, "missing argument 'name'; example: `sluice delete routes old`"
    elseif #list > PAGE then
        return nil, ("at most %d entities can be deleted at once"):format(PAGE)
    end
    return list
end

-- Whether the gateway refuses, since a file is the configuration: there is nothing to ask then.
local function is_refused(settings, arguments)
    return settings.file ~= "" and not arguments.dry_run
end

-- Looks up what is to be deleted, so that a name that is misspelt is no success.
local function deletions(instance, targets)
    local list, lines = {}, {}
    for _, found in ipairs(targets) do
        local entity, why, status = ask_one(instance, found.kind, found.path, found.name)
        if entity then
            local label = ("%s/%s"):format(found.path:sub(2), name_of(found.kind, entity))
            local path = found.path .. "/" .. entity.id
            list[#list + 1] = { kind = found.kind, id = entity.id, path = path, label = label }
        elseif status == 404 then
            lines[#lines + 1] = absent(found)
        else
            return nil, why
        end
    end
    if #lines == 0 then
        return list
    end
    lines[#lines + 1] = NOTHING_DELETED
    return nil, lines
end

-- Deletes them: true, and the revision that has them no more; nil, and lines that say why not.
local function delete(instance, list)
    local operations = {}
    for i, each in ipairs(list) do
        operations[i] = { method = "DELETE", path = each.path }
    end
    local status, answer, _, revision = control.ask(instance.control, "POST", "/batch", {
        type = "application/json",
        text = cjson.encode(operations),
    })
    if status == 200 then
        return true, revision
    end
    local lines = refusal.lines(status, answer)
    local blamed = status and answer.operation and list[answer.operation + 1]
    if blamed then
        -- The answer names the entity by its id, as the operation does; people gave a name.
        local prefix = blamed.path .. ": "
        local has_prefix = lines[1]:sub(1, #prefix) == prefix
        lines[1] = blamed.label .. ": " .. lines[1]:sub(has_prefix and #prefix + 1 or 1)
    end
    lines[#lines + 1] = NOTHING_DELETED
    return nil, lines
end

--- delete: entities by their names, all or none.
_M.delete = on_entities(function(instance, arguments, settings, registry)
    local targets, message = named(arguments)
    if not targets then
        return fail(message, WRONG_USE)
    end
    local list, lines = deletions(instance, targets)
    if not list then
        return fail(lines)
    end
    if is_refused(settings, arguments) then
        local done, why = delete(instance, list)
        return done and DONE or fail(why)
    end
    local plan, err = store.plan(settings, instance, function(held)
        return sources.deletion(held, registry, list)
    end)
    if plan and plan.blocked then
        local label, by = planning.label(plan.blocked), planning.label(plan.blocked.by)
        return fail({ ("%s was not deleted: %s refers to it"):format(label, by), NOTHING_DELETED })
    end
    local code = planning.settle(plan, err, arguments)
    if code then
        return code
    end
    local done, result = delete(instance, list)
    if not done then
        return fail(result)
    end
    planning.report(plan, arguments, result)
    return DONE
end)

--- apply: the entities of a file are made or changed, all or none; others stay.
_M.apply = invocation.on_running(function(instance, _, arguments, context)
    local text, reason = declarative.read(arguments.path)
    if not text then
        return fail("cannot read " .. reason)
    end
    if not arguments.kind and text:find("^%s*[%[-] ?[^-]") then
        return fail("a plain list needs --kind, for example --kind routes", WRONG_USE)
    end
    local name = declarative.name(arguments.path)
    local extension = name:lower():match("%.(%w+)$")
    local target = "/apply?dry_run=" .. (arguments.dry_run and 1 or 0)
    target = arguments.kind and target .. "&kind=" .. escape(arguments.kind) or target
    local body = { type = TYPES[extension] or "text/plain", text = text }
    local status, answer, answered =
        control.ask(instance.control, "POST", target, body, control.FILE_TIMEOUT_S)
    if status == 400 and answer.name == "unknown kind" then
        return fail(answer.message, WRONG_USE)
    elseif status ~= 200 then
        local about = { path = name, text = text, is_list = arguments.kind ~= nil }
        return fail(refusal.of_file(instance, context.root, about, status, answer))
    end
    answer.text = answered
    for _, warning in ipairs(answer.warnings or {}) do
        console.complain({ ("warning: %s: %s"):format(name, warning) })
    end
    if arguments.dry_run or arguments.json then
        return planning.show(answer, arguments, "dry run: ")
    end
    planning.report(answer, arguments, answer.revision)
    return DONE
end)

-- A revision in a cell: its first entities, and how many more.
local function what_of(entry)
    local parts = {}
    for i, each in ipairs(entry.entities) do
        parts[i] = ("%s %s"):format(planning.SIGNS[each.change], planning.label(each))
    end
    local more = entry.created + entry.changed + entry.deleted - #parts
    parts[#parts + 1] = more > 0 and ("and %d more"):format(more) or nil
    return table.concat(parts, ", ")
end

local function time_of(entry)
    return os.date("!%Y-%m-%d %H:%M:%S", entry.at)
end

-- When a revision was made, and who made it.
local function say_origin(instance, revision)
    local target = ("/history?size=1&offset=%d"):format(revision + 1)
    local answer = ask(instance, "GET", target)
    local entry = answer and answer.data[1]
    if entry and entry.revision == revision then
        local by = entry.by ~= NULL and " by " .. entry.by or ""
        say("revision %d, %s%s:", revision, time_of(entry), by)
    end
end

-- What one revision changed.
local function show_revision(instance, arguments, settings, registry)
    local plan, err = store.plan(settings, instance, function(held)
        return sources.revision(held, registry, arguments.revision)
    end)
    if not plan then
        return fail(err)
    elseif not arguments.json then
        say_origin(instance, arguments.revision)
    end
    return planning.show(plan, arguments)
end

--- history: who changed what, the newest first; or what one revision changed.
_M.history = on_entities(function(instance, arguments, settings, registry)
    if arguments.revision then
        return show_revision(instance, arguments, settings, registry)
    end
    local rows, texts = { { "revision", "when", "who", "what" } }, {}
    local left, offset = arguments.size, nil
    repeat
        local target = "/history?size=" .. math.min(left, PAGE)
        target = offset and target .. "&offset=" .. escape(offset) or target
        local answer, text = ask(instance, "GET", target)
        if not answer then
            return fail(text)
        end
        for _, entry in ipairs(answer.data) do
            rows[#rows + 1] = {
                ("%d"):format(entry.revision),
                time_of(entry),
                entry.by ~= NULL and entry.by or "",
                what_of(entry),
            }
        end
        local data = text:match('^{"data":%[(.*)%],"next":')
        texts[#texts + 1] = data ~= "" and data or nil
        left, offset = left - #answer.data, answer.offset
    until not offset or left <= 0
    if arguments.json then
        print_json(texts)
    elseif #rows == 1 then
        local none = settings.file == "" and POSTED_HISTORY or FILE_HISTORY
        say(origins.is_of_store(settings) and "no changes yet" or none)
    else
        print_table(rows)
    end
    return DONE
end)

--- rollback: a new revision that holds what an old one did.
_M.rollback = on_entities(function(instance, arguments, settings, registry)
    local revision, plan = arguments.revision, nil
    if not is_refused(settings, arguments) then
        local found, err = store.plan(settings, instance, function(held)
            return sources.rollback(held, registry, revision)
        end)
        local code = planning.settle(found, err, arguments)
        if code then
            return code
        end
        plan = found
    end
    local answer, lines = ask(instance, "POST", "/rollback", { revision = revision })
    if not answer then
        return fail(lines)
    elseif answer.changes == 0 and not arguments.json then
        say("no differences from revision %d", revision)
        return DONE
    end
    planning.report(plan, arguments, answer.revision)
    if not arguments.json then
        say("revision %d is live: revision %d restored", answer.revision, revision)
    end
    return DONE
end)

return _M
