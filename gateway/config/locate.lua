--- Where errors stand: the name of the entity that each is about, and its line.
-- @module gateway.config.locate

local document = require("gateway.config.document")
local entities = require("gateway.entities")
local nearest = require("sluice.nearest")
local placeholder = require("sluice.placeholder")
local schema = require("gateway.schema")
local text = require("gateway.schema.text")

local char = string.char
local format = string.format

local MAX_PATH = 200
local MAX_NAME = 60
-- Unknown fields of which a file is told what was probably meant.
local MAX_HINTS = 20
-- What an entity is known by, the first that it has. Keys of credentials are secrets.
local NAMES = { "name", "username", "custom_id", "target", "id" }

local _M = {}

-- The next key of a path that gateway.schema has written, and where it ends. Indices count from 1.
local function next_key(path, at)
    local key, finish = path:match("^%.?([%w_@$~*-]+)()", at)
    if key then
        return key, finish
    end
    key, finish = path:match("^%[(%d+)%]()", at)
    if key then
        return tonumber(key) + 1, finish
    end
    key, finish = path:match('^%["([^"]*)"%]()', at)
    if key then
        key = key:gsub("\\x(%x%x)", function(hex)
            return char(tonumber(hex, 16))
        end)
    end
    return key, finish
end

local function name_of(entity)
    for _, field in ipairs(NAMES) do
        local name = type(entity) == "table" and entity[field]
        if type(name) == "string" then
            return text.shorten(name, MAX_NAME):gsub("%c", "?")
        end
    end
    return nil
end

-- The shorthand in an entity that a field comes from which is not there itself: `url`.
local function written_as(field, entity, key)
    for _, entry in ipairs(entity[key] == nil and field and field.shorthand_fields or {}) do
        local name, shorthand = next(entry)
        local is_text, fields = type(entity[name]) == "string", nil
        -- One of a user's own plugin may throw.
        is_text = is_text
            and pcall(function()
                fields = shorthand.func(entity[name])
            end)
        if is_text and type(fields) == "table" and fields[key] ~= nil then
            return name
        end
    end
    return nil
end

-- The schema's field under a key of a record or list, as far as that is known here.
local function field_within(field, key)
    if not field or type(key) == "number" then
        return field and field.elements
    elseif field.type == "map" then
        return field.values
    end
    return field.fields and schema.field(field, key)
end

local IS_LIST = { array = true, set = true }
local LIST = "; write a list: [...]"
local IS_NUMBER = { integer = true, number = true }
local BOOLEANS = { ["true"] = true, yes = true, on = true, ["false"] = true, no = true, off = true }

-- How to write lists and entities in a text: `begins` in the place of a mapping.
local WORDS = {
    json = { begins = LIST, entity = '{"%s": "%s"}', route = '{"paths": ["%s"]}' },
    yaml = {
        begins = "; begin each entry with '- '",
        entity = "`- %s: %s`",
        route = "`- paths: [%s]`",
        is_yaml = true,
    },
}
-- Kinds of which a list of names is meant where it has texts.
local KNOWN_BY = {
    acls = "group",
    consumers = "username",
    keyauth_credentials = "key",
    plugins = "name",
    routes = "name",
    services = "name",
    snis = "name",
    targets = "target",
}
-- Bytes of a number with its unit that are looked at, and of a path that is shown.
local MAX_QUANTITY, MAX_SHOWN = 24, 60
-- Seconds and bytes of the units that people write.
local UNITS = {
    seconds = {
        ms = 0.001,
        s = 1,
        sec = 1,
        second = 1,
        seconds = 1,
        m = 60,
        min = 60,
        minute = 60,
        minutes = 60,
        h = 3600,
        hour = 3600,
        hours = 3600,
        d = 86400,
        day = 86400,
        days = 86400,
    },
    bytes = {
        b = 1,
        k = 1024,
        kb = 1024,
        kib = 1024,
        m = 1024 ^ 2,
        mb = 1024 ^ 2,
        mib = 1024 ^ 2,
        g = 1024 ^ 3,
        gb = 1024 ^ 3,
        gib = 1024 ^ 3,
    },
}

-- What a field counts by its description, and how many of these a second or byte is.
local function unit_of(field)
    local description = (field.description or ""):lower()
    if description:find("milliseconds", 1, true) then
        return "milliseconds", 1000, UNITS.seconds
    elseif description:find("seconds", 1, true) then
        return "seconds", 1, UNITS.seconds
    end
    return description:find("%f[%a]bytes%f[%A]") and "bytes", 1, UNITS.bytes
end

-- The number for a text such as 5s or 10k, in the unit of a field, where its description has one.
local function quantity(field, value)
    local unit, scale, known = unit_of(field)
    if not unit or #value > MAX_QUANTITY then
        return nil
    end
    local count, written = value:match("^(%d+%.?%d*)%s*(%a+)$")
    local factor = written and known[written:lower()]
    if not factor then
        return nil
    end
    local number = tonumber(("%.14g"):format(tonumber(count) * factor * scale))
    local between = field.between or { -math.huge, math.huge }
    local is_right = number >= between[1] and number <= between[2]
    if not is_right or (field.type == "integer" and number % 1 ~= 0) then
        return nil
    end
    return format("; it is in %s: write %.14g", unit, number)
end

-- How to write what a text was to be: `_format_version: 3` is 3.0 there.
local function quotes(field, value, opts)
    for _, allowed in ipairs(type(value) == "number" and field.one_of or {}) do
        if tonumber(allowed) == value then
            return format('; write "%s"', allowed)
        end
    end
    -- Written as off, on, no or yes.
    local is_word = type(value) == "boolean" and opts.is_yaml
    return (is_word and format("; YAML reads it as %s", value) or "") .. "; write it in quotes"
end

local NEEDS_QUOTES = { boolean = true, number = true }

-- What to write in the place of a value. The value is not shown, which may be a secret.
local function correction(field, value, opts)
    local of = field and field.type
    if of == "string" and field.uuid then
        return type(value) ~= "string" and "; leave it out, or write a UUID" or nil
    elseif of == "string" and NEEDS_QUOTES[type(value)] then
        return quotes(field, value, opts)
    elseif of == "string" then
        return type(value) == "string" and field.hint and field.hint(value) or nil
    elseif IS_LIST[of] and type(value) == "string" then
        local is_dashed = opts.is_yaml and value:find("^%-%S")
        return is_dashed and "; write a space after each '-'" or LIST
    elseif
        type(value) == "string"
        and (of == "boolean" and BOOLEANS[value] or IS_NUMBER[of] and tonumber(value))
    then
        return "; write it without quotes"
    end
    if IS_NUMBER[of] and type(value) == "string" then
        return quantity(field, value)
    end
    return IS_NUMBER[of] and field.hint and field.hint(value) or nil
end

-- What a host lacks that stands where a URL is to be.
local function scheme_of(err, value)
    local is_host = err.message == "missing scheme in url"
        and type(value) == "string"
        and value:find("^%w[%w.-]*[:/%w]")
    return is_host and "; begin it with http:// or https://" or nil
end

-- What to write in the place of a name that stands where an entity is to be. Only that of a plugin,
-- a path and an address are shown, as another text may be a secret.
local function entity_of(err, value, opts)
    local key = KNOWN_BY[err.kind]
    if err.field ~= "" or not key or type(value) ~= "string" then
        return nil
    elseif err.kind == "routes" and #value <= MAX_SHOWN and value:find("^/[%w._~/-]*$") then
        return "; write " .. format(opts.route, value)
    end
    local is_address = err.kind == "targets" and value:find("^[%w.-]+:%d+$")
    -- What lacks only the space behind its colon has been called that.
    is_address = is_address and not value:find("^target:") and #value <= MAX_SHOWN
    if not is_address and not value:find("^[%w._-]+$") then
        return nil
    end
    local is_shown = is_address or (err.kind == "plugins" and opts.registry:get(value))
    return "; write " .. format(opts.entity, key, is_shown and value or "...")
end

-- The key of a mapping that was to be an item of a list, the first by its line, and what to write.
local function dashed_key(value, kind, where)
    local found, least
    for key in pairs(value) do
        local field, line = tostring(key):match("^%-([%w_]+)$"), where and where[key] or 0
        local is_first = not found or line < least or (line == least and key < found)
        if field and schema.fields(kind)[field] and is_first then
            found, least = key, line
        end
    end
    return found, found and format("; write '- %s', with a space after the dash", found:sub(2))
end

-- What to write where a whole collection is not as it has to be, and the line that shows it.
local function beginning(path, value, kind, lines, opts)
    if path == "_format_version" and value == nil then
        return '; begin the file with _format_version: "3.0"'
    elseif not kind or type(value) ~= "table" or value[1] ~= nil then
        return nil
    end
    local where = lines[value]
    local key, message = dashed_key(value, kind, where)
    if key and opts.is_yaml then
        return message, where and where[key]
    end
    return opts.begins
end

-- `opts`: `registry` and one of `WORDS`.
local function locate(err, top, value, lines, opts)
    local at, kind, field = 1, nil, top
    local label, shorthand, written = "", nil, nil
    while at <= #err.path and type(value) == "table" do
        local key, finish = next_key(err.path, at)
        if not key then
            break
        end
        local where = lines[value]
        shorthand = written_as(field, value, key)
        written = value[shorthand or key]
        err.line = where and where[shorthand or key] or err.line
        value, field = value[key], field_within(field, key)
        label = label .. err.path:sub(at, finish - 1)
        at = finish
        if kind and type(key) == "number" then
            field = type(value) == "table" and entities.definition(kind.name, value, opts.registry)
                or kind
            err.kind, err.value, err.field = kind.name, value, err.path:sub(at)
            if name_of(value) then
                err.entity = name_of(value)
                label = format('%s "%s"', label, err.entity)
            end
        end
        kind = type(key) == "string" and entities.get(key)
    end
    if at > #err.path then
        local found = placeholder.in_value(written)
        if found then
            err.hint, err.is_hinted_once = "; " .. found, nil
        end
        err.hint = err.hint
            or shorthand and "; it is from " .. shorthand
            or correction(field, value, opts)
            or scheme_of(err, value)
            or entity_of(err, value, opts)
        if not err.hint then
            local line
            err.hint, line = beginning(err.path, value, kind, lines, opts)
            err.line = line or err.line
        end
    end
    err.where = text.shorten(label .. err.path:sub(at), MAX_PATH)
    err.path = text.shorten(err.path, MAX_PATH)
end

-- Kinds of which a field at the top of a file is, where its line is not indented.
local OF_TOP = { "services", "routes", "upstreams", "consumers", "plugins" }

-- By a reference that is called as the parent: a certificate of services is none.
local function is_below(kind, parent)
    for _, foreign in ipairs(entities.foreign(kind)) do
        if foreign.reference == parent and foreign.name .. "s" == parent then
            return true
        end
    end
    return false
end

-- The kind whose entities can stand in the one that has an unknown field, or at the top, and have
-- such a field, other than a reference.
local function kind_with(err)
    local key, kind = err.key, err.kind
    local is_own = type(key) == "string" and (kind and err.field or "." .. err.path) == "." .. key
    -- By `name` of a kind, what its entities are known by is meant.
    if not is_own or (kind and key == "name") then
        return nil
    end
    local found, count = nil, 0
    for _, below in ipairs(kind and entities.kinds or OF_TOP) do
        local field = (not kind or is_below(below, kind))
            and schema.fields(entities.get(below))[key]
        if field and field.type ~= "foreign" then
            local is_known_by = kind and KNOWN_BY[below] == key
            found, count = is_known_by and below or found or below, count + 1
        end
    end
    -- At the top, what several kinds have says nothing.
    return (kind or count == 1) and found or nil
end

-- What was probably meant by an unknown field: one that is written alike, or begins alike; by
-- `name`, what else entities of a kind are known by.
local function nearest_field(err)
    local names, config = {}, err.known[1].config
    config = config and config.fields and schema.fields(config) or {}
    if config[err.key] then
        return "; it belongs under config"
    end
    for _, fields in ipairs(err.known) do
        for name in pairs(fields) do
            names[#names + 1] = name
        end
    end
    table.sort(names)
    local key, near = err.key, nil
    if key == "expression" and err.kind == "routes" then
        return "; expressions are not supported: use paths, hosts, methods, headers and snis"
    elseif type(key) == "string" then
        local own = err.field == ".name" and entities.get(err.kind or "")
        near = nearest.guess(key, names) or (own and own.endpoint_key)
        local below = not near and nearest.find(key, schema.sorted_keys(config))
        near = below and "config." .. below or near
    end
    local kind = kind_with(err)
    kind = kind ~= near and kind or nil
    local of_kind = kind and format("%s is a field of %s", near and key or "it", kind)
    return near and format("; did you mean %s?%s", near, kind and " " .. of_kind or "")
        or (kind and "; " .. of_kind)
        or nil
end

-- Errors of the whole text first, and last that there are more.
local function in_order(errors)
    local places = {}
    for i, err in ipairs(errors) do
        places[err] = i
    end
    table.sort(errors, function(a, b)
        if a.is_end or b.is_end then
            return b.is_end and not a.is_end
        end
        local line, other = a.line or 0, b.line or 0
        return line < other or (line == other and places[a] < places[b])
    end)
end

-- Leaves a long hint, such as the list of all plugins, to the first error that has one.
local function hint_once(errors)
    local is_said = false
    for _, err in ipairs(errors) do
        if err.is_hinted_once then
            err.hint = not is_said and err.hint or nil
            is_said = true
        end
    end
end

--- Adds to each error and warning what is known of its place: `entity`, the name of the innermost
-- entity, with its `kind`, its `value` as the file has it, and the path in it, `field`; `where`,
-- the path with the names of the entities; `line`, unless the text is one, by which they are
-- sorted then; `hint`, what was probably meant. Decodes the text once more, so that a file without
-- either does not pay for it.
-- @tparam table errors of gateway.config.report
-- @tparam {table,...} warnings
-- @tparam table top schema of a file
-- @tparam string source the text that they are about
-- @tparam[opt] string kind as for gateway.config.document
-- @tparam table registry of plugins
-- @tparam[opt] function pause as for gateway.config.document
function _M.run(errors, warnings, top, source, kind, registry, pause)
    local lines = {}
    kind = kind or document.kind_of(source)
    local opts = setmetatable({ registry = registry }, { __index = WORDS[kind] })
    local value = document.decode(source, kind, { lines = lines, pause = pause })
    local hints = 0
    for _, err in ipairs(errors) do
        locate(err, top, value, lines, opts)
        if err.known and hints < MAX_HINTS then
            hints = hints + 1
            err.hint = nearest_field(err)
        end
    end
    in_order(errors)
    hint_once(errors)
    for _, warning in ipairs(warnings) do
        locate(warning, top, value, lines, opts)
    end
    in_order(warnings)
end

return _M
