--- What plugins bring to images: what native ones have packed for their C, and kinds of entities.
--
-- An entity that no C reads is found by its id and by what is unique in it, and has its text.
--
-- Of a configuration that is what the plugin's `pack(config)` has written; of its credentials what
-- the `pack(entity)` of their schema has, if it has one. Plugins stand above, so the layout of a
-- kind names the module (`packers`, `packer`).
-- @module gateway.image.of_plugins

local bit = require("bit")
local core = require("sluice.ffi.core")
local flags = require("gateway.image.flags")
local packed = require("sluice.ffi.packed")
local patterns = require("gateway.entities.patterns")

local C = core.C
local bor = bit.bor
local ipairs = ipairs
local min = math.min
local require = require

local _M = {}

--- What C reads of a plugin's configuration; nil: it is not native, not loaded here, or disabled.
-- @tparam table plugin the entity
-- @tparam table of layout of its kind
-- @treturn string|nil
function _M.packed_config(plugin, of)
    local packer = of.packers and of.packers[plugin.name]
    local is_used = packer and packer.packs ~= false and plugin.enabled ~= false
    return is_used and require(packer.module).pack(plugin.config) or nil
end

-- The regular expressions of a configuration that some C runs.
local function used_patterns(plugin, of)
    local packer = of.packers and of.packers[plugin.name]
    local is_used = packer and packer.packs ~= false and plugin.enabled ~= false
    return is_used and patterns.of_plugin(require(packer.module), plugin.config) or {}
end

--- What the regular expressions of a plugin's configuration take compiled.
-- @tparam table plugin the entity
-- @tparam table of layout of its kind
-- @treturn number in units of gateway.entities.patterns
function _M.units(plugin, of)
    return patterns.bytes_of_plugin(used_patterns(plugin, of)) / patterns.UNIT
end

--- These regular expressions, as they stand in an image (SLUICE_CORE_PLUGIN_PATTERNS), for who
-- compiles them before a request comes; those beyond a list's end are compiled when one does.
-- @tparam table plugin the entity
-- @tparam table of layout of its kind
-- @treturn {string,...}
function _M.patterns(plugin, of)
    local out = {}
    local found = used_patterns(plugin, of)
    for i = 1, min(#found, C.SLUICE_CORE_LIST_MAX) do
        out[i] = (found[i].is_anchored and "~" or "*") .. found[i].text
    end
    return out
end

--- The field of a plugin's configuration whose regular expressions take the most.
-- @tparam table plugin the entity
-- @tparam table of layout of its kind
-- @treturn string such as "config.deny"
function _M.field_of_patterns(plugin, of)
    return patterns.field_of_plugin(used_patterns(plugin, of))
end

--- The flags of a plugin's configuration: which phases in Lua it needs, where its plugin says that
-- (`lua_phases`).
-- @tparam table plugin the entity
-- @tparam table of layout of its kind
-- @treturn number
function _M.flags(plugin, of)
    local packer = of.packers and of.packers[plugin.name]
    if not packer or not packer.has_phases or plugin.enabled == false then
        return 0
    end
    local bits = 0
    for _, phase in ipairs(require(packer.module).lua_phases(plugin.config)) do
        bits = bor(bits, flags.phases[phase])
    end
    return bits * flags.plugin.LUA
end

local function packed_credential(entity, of)
    for _, schema in ipairs(of.packer and require(of.packer.module) or {}) do
        if schema.name == of.kind then
            return schema.pack(entity)
        end
    end
    return nil
end

-- What the records of entities and those of credentials have in common.
local function with_look_ups(of, fields)
    fields[5] = { "keys", "look_ups" }
    fields[6] = {
        "number",
        function()
            return of.number or 0
        end,
    }
    return fields
end

--- What to say where the fields of an entity, packed as one, are longer than a text of an image
-- may be: which has the most of it, and what is wrong with that.
-- @tparam table entity
-- @treturn string|nil
-- @treturn string
function _M.blame(entity)
    local most, length = nil, 0
    for name, value in pairs(entity) do
        if type(value) == "string" and (#value > length or (#value == length and name < most)) then
            most, length = name, #value
        end
    end
    local is_alone = length > packed.TEXT_MAX
    return most, is_alone and packed.TOO_LONG or "makes the credential longer than 1 MiB"
end

local function name_of_kind(_, of)
    return of.kind
end

-- The key by which requests find a credential: what its unique name is.
local function key_of(of)
    for _, column in ipairs(of.space == "credentials" and of.columns or {}) do
        if column.is_name then
            return column.fields[1]
        end
    end
    return nil
end

--- The fields of a plugin's kind of entities (gateway.image.records).
-- @tparam table of its layout
-- @treturn table|nil nil: images have none of it
function _M.fields(of)
    if of.label then
        return {
            kind = C.SLUICE_CORE_LABEL,
            has_no_body = true,
            { "slot", "consumer" },
            { "made", "kind", name_of_kind },
            { "text", of.label },
        }
    end
    local key = key_of(of)
    if key then
        return with_look_ups(of, {
            kind = C.SLUICE_CORE_CREDENTIAL,
            { "slot", "consumer" },
            { "key", key },
            { "number", "expires_at" },
            { "made", "credential", packed_credential },
        })
    end
    return of.look_ups
        and with_look_ups(of, {
            kind = C.SLUICE_CORE_ENTITY,
            { "slot", "consumer" },
            { "none", "key" },
            { "number", "expires_at" },
            { "none", "packed" },
        })
end

return _M
