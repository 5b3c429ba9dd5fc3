--- The commands about single entities, over the control socket. Each takes the parsed arguments and
-- a context and returns an exit code.

local cjson = require("cjson")
local console = require("cli.console")
local control = require("cli.control")
local entities = require("gateway.entities")
local entity_rows = require("cli.entity_rows")
local invocation = require("cli.invocation")
local preflight = require("cli.preflight")
local prefixes = require("cli.prefix")
local process = require("cli.process")
local tables = require("cli.table")

local _M = {}

local DONE, WRONG_USE = console.DONE, console.WRONG_USE
local say, fail, print_lines = console.say, console.fail, console.print_lines

local NULL = cjson.null
-- Entities of a page, and operations of a batch: the most that the gateway takes.
local PAGE = 1000
-- A page of entities costs as much as so many that are asked for one by one.
local FEW = 50
local SIGNS = { created = "+", changed = "~", deleted = "-" }
local TYPES = { json = "application/json", yaml = "application/yaml", yml = "application/yaml" }

--- The kinds that can be named, as in paths of the Admin API.
-- @treturn {string,...}
function _M.kinds()
    local names = {}
    for _, kind in ipairs(entities.kinds) do
        if entities.has_collection(kind) then
            names[#names + 1] = entities.path_name(kind)
        end
    end
    table.sort(names)
    return names
end

-- A command that needs the kinds of entities: `run(instance, arguments)`.
local function on_entities(run)
    return invocation.on_running(function(instance, _, arguments, context)
        local ours, foreign = prefixes.new(instance):check(context.root)
        local settings = ours and instance:read_settings()
        if not settings then
            return fail(foreign or "cannot read the settings of " .. instance.prefix)
        end
        local problems = {}
        if not preflight.load_plugins(settings, problems) then
            return fail(problems)
        end
        return run(instance, arguments)
    end)
end

local function escape(segment)
    return (
        segment:gsub("[^%w._~-]", function(char)
            return ("%%%02X"):format(char:byte())
        end)
    )
end

-- The kind that a name in a path means, where it stands in what.
local function kind_named(name, parent)
    for _, kind in ipairs(entities.kinds) do
        local field = not parent or entities.children(parent)[kind]
        local is_there = parent or entities.has_collection(kind)
        if field and is_there and entities.path_name(kind, parent ~= nil) == name then
            return kind
        end
    end
    return nil
end

-- What `routes` or `upstreams/pool/targets` leads to: `path`, escaped, and `kind`.
local function collection(text)
    local first, key, nested = text:match("^([^/]+)/([^/]+)/([^/]+)$")
    local kind = kind_named(first or text)
    if not kind then
        local message =
            "there is no kind '%s'; expected one of %s, or such as upstreams/NAME/targets"
        return nil, message:format(first or text, table.concat(_M.kinds(), ", "))
    elseif not nested then
        return { path = "/" .. text, kind = kind }
    end
    local child = kind_named(nested, kind)
    if not child then
        return nil, ("%s have no %s"):format(first, nested)
    end
    return { path = ("/%s/%s/%s"):format(first, escape(key), nested), kind = child }
end

-- Where in a file an error stands, and of which entity.
local function place_of(err)
    if not err.path or err.path == "" then
        return ""
    end
    return err.entity and ("%s (%s): "):format(err.path, err.entity) or err.path .. ": "
end

-- Lines that say why the gateway has refused.
local function reasons(status, answer)
    if not status then
        return { answer }
    end
    local lines = {}
    for _, err in ipairs(answer.errors or {}) do
        local line = err.line and ("line %d: "):format(err.line) or ""
        lines[#lines + 1] = ("  %s%s%s"):format(line, place_of(err), err.message)
    end
    if #lines > 0 then
        table.insert(lines, 1, ("%d error%s:"):format(#lines, #lines == 1 and "" or "s"))
        return lines
    end
    return { place_of(answer) .. tostring(answer.message) }
end

-- Asks for something that has to be there; nil, and lines that say why it is not.
local function ask(instance, method, target, value)
    local body = value and { type = "application/json", text = cjson.encode(value) }
    local status, answer, text = control.ask(instance.control, method, target, body)
    if status ~= 200 then
        return nil, reasons(status, answer), status
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
        local answer, text = ask(instance, "GET", target)
        if not answer then
            return nil, text
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

-- The names of those that entities refer to.
local function names_of(instance, references)
    local names = {}
    for kind, ids in pairs(references) do
        local of_kind, path = {}, "/" .. entities.path_name(kind)
        names[kind] = of_kind
        local function keep(answer)
            for _, entity in ipairs(answer.data or { answer }) do
                of_kind[entity.id] = name_of(kind, entity)
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
    return names
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
    local names = names_of(instance, entity_rows.references(columns, list))
    print_table(entity_rows.rows(columns, list, names))
end

-- JSON as it came, since numbers and empty lists do not survive being read.
local function print_json(texts)
    say("[%s]", table.concat(texts, ","))
end

--- get: a list of entities, or one.
_M.get = on_entities(function(instance, arguments)
    local found, message = collection(arguments.kind)
    if not found then
        return fail(message, WRONG_USE)
    elseif arguments.name and arguments.tags then
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
    if arguments.name then
        done, lines, status =
            ask_one(instance, found.kind, found.path, arguments.name, arguments.reveal)
        if done then
            keep(done, lines)
        end
    else
        done, lines, status = each_page(instance, found.path, query, keep)
    end
    if not done then
        local is_absent = status == 404 and arguments.name
        local absent = "there is no %s in %s"
        return fail(is_absent and absent:format(arguments.name, arguments.kind) or lines)
    elseif arguments.json then
        print_json(texts)
    else
        print_entities(instance, found.kind, list, arguments.reveal)
    end
    return DONE
end)

-- Looks up what is to be deleted, so that a name that is misspelt is no success.
local function deletions(instance, found, arguments)
    local list, lines = {}, {}
    for _, name in ipairs(arguments.names) do
        local entity, why, status = ask_one(instance, found.kind, found.path, name)
        if entity then
            local label = ("%s/%s"):format(arguments.kind, name_of(found.kind, entity))
            list[#list + 1] =
                { method = "DELETE", path = found.path .. "/" .. entity.id, label = label }
        elseif status == 404 then
            lines[#lines + 1] = ("there is no %s in %s"):format(name, arguments.kind)
        else
            return nil, why
        end
    end
    return #lines == 0 and list or nil, lines
end

--- delete: entities by their names, all or none.
_M.delete = on_entities(function(instance, arguments)
    local found, message = collection(arguments.kind)
    if not found then
        return fail(message, WRONG_USE)
    elseif #arguments.names > PAGE then
        return fail(("more than %d at once"):format(PAGE), WRONG_USE)
    end
    local list, lines = deletions(instance, found, arguments)
    if not list then
        return fail(lines)
    end
    local operations = {}
    for i, each in ipairs(list) do
        operations[i] = { method = each.method, path = each.path }
    end
    local status, answer = control.ask(instance.control, "POST", "/batch", {
        type = "application/json",
        text = cjson.encode(operations),
    })
    if status ~= 200 then
        lines = reasons(status, answer)
        local blamed = status and answer.operation and list[answer.operation + 1]
        if blamed then
            -- The answer names the entity by its id, as the operation does; people gave a name.
            local prefix = blamed.path .. ": "
            local has_prefix = lines[1]:sub(1, #prefix) == prefix
            lines[1] = blamed.label .. ": " .. lines[1]:sub(has_prefix and #prefix + 1 or 1)
        end
        lines[#lines + 1] = "nothing was deleted"
        return fail(lines)
    end
    for _, each in ipairs(list) do
        say("%s deleted", each.label)
    end
    return DONE
end)

local function read(path)
    if path == "-" then
        return io.read("*a")
    end
    return process.read_file(path)
end

local function say_applied(answer, is_trial)
    local would = is_trial and "would be " or ""
    for _, each in ipairs(answer.entities) do
        local name = each.name ~= NULL and each.name or each.id
        local change = each.change == "unchanged" and each.change or would .. each.change
        say("%s/%s %s", each.kind, name, change)
    end
    local counts = ("%d created, %d changed, %d unchanged"):format(
        answer.created,
        answer.changed,
        answer.unchanged
    )
    say("%s", is_trial and "dry run: " .. counts or counts .. ": revision " .. answer.revision)
end

--- apply: the entities of a file are made or changed, all or none; others stay.
_M.apply = invocation.on_running(function(instance, _, arguments)
    local text, reason = read(arguments.path)
    if not text then
        return fail("cannot read " .. reason)
    end
    if not arguments.kind and text:find("^%s*[%[-] ?[^-]") then
        return fail("a list in place of a declarative file needs --kind, such as routes", WRONG_USE)
    end
    local extension = arguments.path:lower():match("%.(%w+)$")
    local target = "/apply?dry_run=" .. (arguments.dry_run and 1 or 0)
    target = arguments.kind and target .. "&kind=" .. escape(arguments.kind) or target
    local body = { type = TYPES[extension] or "text/plain", text = text }
    local status, answer =
        control.ask(instance.control, "POST", target, body, control.FILE_TIMEOUT_S)
    if status ~= 200 then
        local lines = reasons(status, answer)
        lines[1] = ("%s: %s"):format(arguments.path == "-" and "stdin" or arguments.path, lines[1])
        -- Who does not answer may have done it.
        lines[#lines + 1] = status and "nothing was changed"
            or "what was changed, `sluice history` says"
        return fail(lines)
    end
    if arguments.json then
        say("%s", (cjson.encode(answer):gsub("\\/", "/")))
    else
        say_applied(answer, arguments.dry_run)
    end
    return DONE
end)

local function what_of(entry)
    local parts = {}
    for i, each in ipairs(entry.kinds) do
        parts[i] = ("%s %s%d"):format(each.kind, SIGNS[each.what], each.count)
    end
    return table.concat(parts, ", ")
end

--- history: who changed what, the newest first.
_M.history = invocation.on_running(function(instance, _, arguments)
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
                os.date("%Y-%m-%d %H:%M:%S", entry.at),
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
    else
        print_table(rows)
    end
    return DONE
end)

--- rollback: a new revision that holds what an old one did.
_M.rollback = invocation.on_running(function(instance, _, arguments)
    local answer, lines = ask(instance, "POST", "/rollback", { revision = arguments.revision })
    if not answer then
        return fail(lines)
    elseif answer.changes == 0 then
        say("nothing differs from revision %d", arguments.revision)
    else
        local many = answer.changes == 1 and "" or "s"
        local line = "revision %d is live: what %d was, %d change%s"
        say(line, answer.revision, arguments.revision, answer.changes, many)
    end
    return DONE
end)

return _M
