--- The kinds and entities that arguments name: `routes`, `services/web`, `upstreams/pool/targets`.

local entities = require("gateway.entities")
local kind_names = require("gateway.config.kind_names")

local _M = {}

--- The kinds that have a list of their own, as in paths of the Admin API.
-- @treturn {string,...} sorted
function _M.names()
    local names = {}
    for _, kind in ipairs(entities.kinds) do
        if entities.has_collection(kind) then
            names[#names + 1] = entities.path_name(kind)
        end
    end
    table.sort(names)
    return names
end

--- Escapes a segment of a path.
-- @tparam string segment
-- @treturn string
function _M.escape(segment)
    return (
        segment:gsub("[^%w._~-]", function(char)
            return ("%%%02X"):format(char:byte())
        end)
    )
end

-- Where the entities of a kind without a list of its own are.
local function place_of(kind)
    local parent = entities.foreign(kind)[1].reference
    if entities.get(kind).generate_admin_api == false then
        return "see " .. entities.path_name(parent) .. " in docs/admin.md"
    end
    local name = entities.path_name(kind, true)
    return ("use %s/NAME/%s"):format(entities.path_name(parent), name)
end

-- The kind that stands first in what was typed.
local function first_kind(name)
    local kind, near = kind_names.read(name)
    if kind and entities.has_collection(kind) then
        return kind
    elseif kind then
        return nil, ("%s have no list of their own; %s"):format(kind, place_of(kind))
    elseif near and entities.has_collection(near) then
        local line = "unknown kind '%s'; did you mean %s?"
        return nil, line:format(name, entities.path_name(near))
    end
    local message = "unknown kind '%s'; expected one of %s, or such as upstreams/NAME/targets"
    return nil, message:format(name, table.concat(_M.names(), ", "))
end

-- The kind that stands in another, and its name there.
local function nested_kind(parent, name)
    local kind, near = kind_names.read(name, parent)
    if kind and entities.get(kind).generate_admin_api ~= false then
        return kind, entities.path_name(kind, true)
    end
    local hint = near and ("; did you mean %s?"):format(entities.path_name(near, true)) or ""
    return nil, ("%s have no %s%s"):format(entities.path_name(parent), name, hint)
end

--- What `routes`, `services/web`, `upstreams/pool/targets` or `upstreams/pool/targets/NAME` means.
-- @tparam string text
-- @treturn table|nil `kind`; `path` of its list, escaped; `name` of one entity, if that is in it;
-- `parent`: kind and name of the entity that a nested list is of
-- @treturn nil|string for people, why it is nothing
function _M.read(text)
    local parts = {}
    for part in (text .. "/"):gmatch("([^/]*)/") do
        parts[#parts + 1] = part
    end
    local kind, message = first_kind(parts[1])
    if not kind then
        return nil, message
    end
    for i = 2, #parts do
        if parts[i] == "" or i > 4 then
            local line = "'%s' is not valid; expected KIND, KIND/NAME, KIND/NAME/KIND or "
                .. "KIND/NAME/KIND/NAME"
            return nil, line:format(text)
        end
    end
    local path = "/" .. entities.path_name(kind)
    if #parts < 3 then
        return { kind = kind, path = path, name = parts[2] }
    end
    local child, name = nested_kind(kind, parts[3])
    if not child then
        return nil, name
    end
    path = ("%s/%s/%s"):format(path, _M.escape(parts[2]), name)
    local first = { path = "/" .. entities.path_name(kind), name = parts[2] }
    return { kind = child, path = path, name = parts[4], parent = first }
end

return _M
