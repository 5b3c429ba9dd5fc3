--- docs/entities.md, and the tables of fields in the pages of plugins: what the schemas say.
-- `make docs` writes them; test/unit/entities_page_spec.lua holds them to the schemas.

local cjson = require("cjson")
local collections = require("gateway.admin.collections")
local entities = require("gateway.entities")
local files = require("test.house.files")
local registry = require("gateway.plugin.registry")
local schema = require("gateway.schema")
local words = require("scripts.docs.field_words")

local NULL = cjson.null
local code, codes = words.code, words.codes
local PAGE = "docs/entities.md"

local INTRODUCTION = [[
# Entities

<!-- Generated from the schemas by `make docs`; changes here are lost. -->

All kinds of entities and their fields. A declarative file has a list for each kind; the Admin API
([admin.md](admin.md)) has paths for each, with the same fields. Use `sluice check` to validate a
file. `GET /schemas/{kind}` and `/openapi.json` describe the same fields for programs.

- *default* is the value of a field that is missing or null. *required*: the field must be set.
  *generated*: the gateway sets the field if it is missing. Empty: null.
- References are a name, an id, `{id: ...}` or `{name: ...}`. Responses have `{"id": ...}`.
- In a file, an entity can be nested in the one that it belongs to, without the reference: a route
  in its service, a target in its upstream, a plugin in the entity that it is bound to.
- *Unique*: no other entity of the kind may have the same value.
- *Secret*: shown only to clients that may see secrets, and never logged.
- *May be a reference to a vault*: `{vault://env/NAME}`, see [vaults](#vaults).
- Strings must not be empty unless stated otherwise.
]]

-- The order of the page: what most files begin with.
local ORDER = {
    "services",
    "routes",
    "upstreams",
    "targets",
    "consumers",
    "consumer_groups",
    "consumer_group_consumers",
    "plugins",
    "certificates",
    "snis",
    "ca_certificates",
    "vaults",
    "key_sets",
    "keys",
}

local _M = {}

-- Fields -----------------------------------------------------------------------------------------

--- Calls a function with each field of a record and of the records in it, in their order.
-- @tparam table definition schema
-- @tparam function visit called with the dotted name, the field, and whether it stands for others
-- @tparam[opt=""] string prefix of the names
function _M.each_field(definition, visit, prefix)
    prefix = prefix or ""
    for _, list in ipairs({ definition.fields, definition.shorthand_fields or {} }) do
        for _, entry in ipairs(list) do
            local name, field = next(entry)
            visit(prefix .. name, field, list == definition.shorthand_fields)
            local inner = field.elements or field.values
            if field.fields then
                _M.each_field(field, visit, prefix .. name .. ".")
            elseif inner and inner.fields then
                _M.each_field(inner, visit, prefix .. name .. "[].")
            end
        end
    end
end

local function cell(text)
    return (text:gsub("|", "\\|"))
end

local function table_of(out, definition, link, leave_out)
    out[#out + 1] = "| field | type | default | limits | |"
    out[#out + 1] = "|---|---|---|---|---|"
    _M.each_field(definition, function(name, field, is_shorthand)
        if not (leave_out and name:find(leave_out)) then
            local cells = {
                code(name),
                words.type(field, link),
                words.default(field),
                words.limits(field),
                field.description .. (is_shorthand and " Not in responses." or ""),
            }
            out[#out + 1] = "| " .. cell(table.concat(cells, "\0")):gsub("%z", " | ") .. " |"
            out[#out] = out[#out]:gsub("|  ", "| "):gsub("|  ", "| ")
        end
    end)
    out[#out + 1] = ""
end

-- Rules over several fields.
local function checks_of(out, definition)
    local sentences = words.checks(definition)
    for _, sentence in ipairs(sentences) do
        out[#out + 1] = "- " .. sentence
    end
    out[#out + 1] = #sentences > 0 and "" or nil
end

-- Pages ------------------------------------------------------------------------------------------

--- The kinds in the order of the page, without those that no client sees.
-- @treturn {string,...}
function _M.kinds()
    local out, seen = {}, {}
    for _, list in ipairs({ ORDER, entities.kinds }) do
        for _, kind in ipairs(list) do
            if not seen[kind] then
                seen[kind] = true
                out[#out + 1] = kind
            end
        end
    end
    return out
end

local function link_here(kind)
    return ("[%s](#%s)"):format(kind, kind)
end

local function places_of(kind)
    local paths = {}
    for _, of in ipairs(collections.list()) do
        paths[#paths + 1] = of.kind == kind and not of.is_one and of.path or nil
    end
    table.sort(paths, function(a, b)
        return #a < #b or #a == #b and a < b
    end)
    local name = entities.get(kind).endpoint_key
    local known_by = entities.get(kind).known_by
    local other = name and code(name)
        or known_by and "the name of one of its " .. code(known_by.kind)
    local by = ", one of them by `id`" .. (other and " or " .. other or "")
    local admin = #paths > 0 and ("; %s in the Admin API%s"):format(codes(paths, " and "), by) or ""
    return ("%s in files%s."):format(code(kind), admin)
end

--- An example as a declarative file.
-- @tparam table definition schema of a kind
-- @treturn string YAML
function _M.example(definition)
    return '_format_version: "3.0"\n' .. definition.example
end

local function kind_section(out, kind)
    local definition = entities.get(kind)
    out[#out + 1] = ("## %s\n\n%s\n"):format(kind, definition.description)
    out[#out + 1] = places_of(kind) .. "\n"
    table_of(out, definition, link_here)
    checks_of(out, definition)
    out[#out + 1] = "```yaml\n" .. _M.example(definition) .. "```\n"
end

-- What the configurations of a plugin cannot be bound to.
local function unbound(plugin)
    local names = {}
    for _, entry in ipairs(plugin.schema.fields) do
        local name, field = next(entry)
        names[#names + 1] = field.eq == NULL and name or nil
    end
    if #names == 0 then
        return ""
    end
    return (" %s %s to be null."):format(codes(names, " and "), #names > 1 and "have" or "has")
end

local function page_of(plugin)
    return "docs/plugins/" .. plugin.name .. ".md"
end

local function plugin_section(out, plugin)
    local definition = plugin.schema
    out[#out + 1] = ("### %s\n\n%s%s\n"):format(
        plugin.name,
        definition.description,
        unbound(plugin)
    )
    out[#out + 1] = ("More, with an example: [%s](%s). Fields of `config`:\n"):format(
        plugin.name,
        (page_of(plugin):gsub("^docs/", ""))
    )
    table_of(out, schema.field(definition, "config"), link_here)
    checks_of(out, definition)
end

local function load()
    return assert(registry.load({ "bundled" }))
end

local function entities_page(plugins)
    local out, links = { INTRODUCTION }, {}
    for i, kind in ipairs(_M.kinds()) do
        links[i] = link_here(kind)
    end
    out[#out + 1] = "Kinds: "
        .. table.concat(links, ", ")
        .. "; [configurations of plugins](#configurations-of-plugins).\n"
    for _, kind in ipairs(_M.kinds()) do
        kind_section(out, kind)
    end
    out[#out + 1] = "## Configurations of plugins\n"
    for _, plugin in ipairs(plugins:list()) do
        plugin_section(out, plugin)
    end
    return (table.concat(out, "\n"):gsub("\n+$", "\n"))
end

-- The page of a plugin, with what stands between `<!-- fields -->` and `<!-- end of fields -->`.
local function plugin_page(plugin, text)
    local out = {}
    local function link(kind)
        return ("[%s](../entities.md#%s)"):format(kind, kind)
    end
    table_of(out, schema.field(plugin.schema, "config"), link, plugin.schema.page_skips)
    checks_of(out, plugin.schema)
    local made = table.concat(out, "\n"):gsub("\n+$", "\n"):gsub("%%", "%%%%")
    local whole, count =
        text:gsub("(<!%-%- fields %-%->\n).-(<!%-%- end of fields %-%->)", "%1" .. made .. "%2")
    assert(count == 1, page_of(plugin) .. " has no place for fields")
    return whole
end

--- The pages as they have to be.
-- @treturn table path -> text
function _M.pages()
    local plugins = load()
    local pages = { [PAGE] = entities_page(plugins) }
    for _, plugin in ipairs(plugins:list()) do
        local path = page_of(plugin)
        pages[path] = plugin_page(plugin, files.read(path))
    end
    return pages
end

--- Writes them.
function _M.write()
    for path, text in pairs(_M.pages()) do
        files.write(path, text)
    end
end

return _M
