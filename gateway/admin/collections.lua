--- Which entities have which paths, read off the schemas: `/services`, `/services/{services}`,
-- `/services/{services}/routes`, `/routes/{routes}/service` and so on.
-- @module gateway.admin.collections

local entities = require("gateway.entities")

local sort = table.sort

local _M = {}

-- Name in the path -> kind.
local collections
-- Kind of the parent -> name in the path -> { kind =, field = of the child that names the parent }.
local nested
-- Kind -> field that refers to another entity -> the kind of that one.
local references

-- At the first request: the plugins have added their kinds by then.
local function load()
    collections, nested, references = {}, {}, {}
    for _, kind in ipairs(entities.kinds) do
        if entities.has_collection(kind) then
            collections[entities.path_name(kind)] = kind
        end
        nested[kind], references[kind] = {}, {}
        for _, field in ipairs(entities.foreign(kind)) do
            references[kind][field.name] = field.reference
        end
        for child, field in pairs(entities.children(kind)) do
            if entities.get(child).generate_admin_api ~= false then
                local name = entities.path_name(child, true)
                nested[kind][name] = { kind = child, field = field }
            end
        end
    end
end

--- What a path leads to.
-- @tparam {string,...} segments of the path, unescaped
-- @treturn table|nil `{ kind =, key = of one entity, nil for all of them, parent = { kind =, key =,
-- field = } of nested ones, by = { kind =, key =, field = } of the one that another refers to }`
function _M.find(segments)
    if not collections then
        load()
    end
    local kind, depth = collections[segments[1]], #segments
    if not kind or depth > 4 then
        return nil
    elseif depth <= 2 then
        return { kind = kind, key = segments[2] }
    end
    local child, reference = nested[kind][segments[3]], references[kind][segments[3]]
    if reference and depth == 3 then
        return {
            kind = reference,
            by = { kind = kind, key = segments[2], field = segments[3] },
        }
    end
    return child
        and {
            kind = child.kind,
            key = segments[4],
            parent = { kind = kind, key = segments[2], field = child.field },
        }
end

local function add(paths, path, kind, parent)
    paths[#paths + 1] = { path = path, kind = kind, parent = parent }
    paths[#paths + 1] =
        { path = path .. "/{" .. kind .. "}", kind = kind, parent = parent, is_one = true }
end

--- All paths of entities, sorted.
-- @treturn {table,...} `{ path =, kind =, is_one = whether of one entity, parent = { kind =,
-- field = } of nested ones, by = { kind =, field = } of one that another refers to }`, parts that
-- stand for a name in braces
function _M.list()
    if not collections then
        load()
    end
    local paths = {}
    for name, kind in pairs(collections) do
        add(paths, "/" .. name, kind)
        for child_name, child in pairs(nested[kind]) do
            local path = ("/%s/{%s}/%s"):format(name, kind, child_name)
            add(paths, path, child.kind, { kind = kind, field = child.field })
        end
        for field, reference in pairs(references[kind]) do
            paths[#paths + 1] = {
                path = ("/%s/{%s}/%s"):format(name, kind, field),
                kind = reference,
                by = { kind = kind, field = field },
                is_one = true,
            }
        end
    end
    sort(paths, function(a, b)
        return a.path < b.path
    end)
    return paths
end

return _M
