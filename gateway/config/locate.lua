--- Where errors stand: the name of the entity that each is about, and its line in YAML.
-- @module gateway.config.locate

local document = require("gateway.config.document")
local entities = require("gateway.entities")
local text = require("gateway.schema.text")

local char = string.char
local format = string.format
local ipairs = ipairs
local tonumber = tonumber
local type = type

local MAX_PATH = 200
local MAX_NAME = 60
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

local function locate(err, value, lines)
    local at, kind = 1, nil
    local label = ""
    while at <= #err.path and type(value) == "table" do
        local key, finish = next_key(err.path, at)
        if not key then
            break
        end
        local where = lines[value]
        err.line = where and where[key] or err.line
        value = value[key]
        label = label .. err.path:sub(at, finish - 1)
        at = finish
        if kind and type(key) == "number" then
            err.kind, err.value, err.field = kind.name, value, err.path:sub(at)
            if name_of(value) then
                err.entity = name_of(value)
                label = format('%s "%s"', label, err.entity)
            end
        end
        kind = type(key) == "string" and entities.get(key)
    end
    err.where = text.shorten(label .. err.path:sub(at), MAX_PATH)
    err.path = text.shorten(err.path, MAX_PATH)
end

--- Adds to each error what is known of its place: `entity`, the name of the innermost entity, with
-- its `kind`, its `value` as the file has it, and the path in it, `field`; `where`, the path with
-- the names of the entities; `line`, where the text is YAML. Decodes the
-- text once more, so that a file without errors does not pay for it.
-- @tparam table errors of gateway.config.report
-- @tparam string source the text that they are about
-- @tparam[opt] string kind as for gateway.config.document
-- @tparam[opt] function pause as for gateway.config.document
function _M.run(errors, source, kind, pause)
    local lines = {}
    local value = document.decode(source, kind, { lines = lines, pause = pause })
    for _, err in ipairs(errors) do
        locate(err, value, lines)
    end
end

return _M
