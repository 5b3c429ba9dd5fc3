--- What the methods of `kong.db.<entity>` are given: misuse throws at their caller, as in Kong;
-- what a client may have sent is an error of gateway.kit.db_errors.
-- @module gateway.kit.db.dao_checks

local cjson = require("cjson")
local rules = require("gateway.schema.rules")

local error = error
local floor = math.floor
local type = type

local NULL = cjson.null
local MAX_TTL, MAX_TAGS = 100000000, 5

local _M = {}

--- Sizes of pages.
_M.PAGE_SIZE, _M.MAX_PAGE_SIZE = 1000, 50000

-- The caller of the method that asks.
local CALLER = 4

local function must_be(value, wanted, name)
    if type(value) ~= wanted then
        error(("%s must be a %s"):format(name, wanted), CALLER)
    end
end

--- Throws unless a key, an entity and options are tables; options may be left out.
function _M.tables(key, entity, options)
    if key ~= nil then
        must_be(key.value, "table", key.name)
    end
    if entity ~= nil then
        must_be(entity.value, "table", "entity")
    end
    if options ~= nil and type(options) ~= "table" then
        error("options must be a table when specified", CALLER - 1)
    end
end

--- Throws unless a size is a number, an offset a string.
function _M.paging(size, offset, options)
    if size ~= nil and type(size) ~= "number" then
        error("size must be a number", CALLER - 1)
    elseif offset ~= nil and type(offset) ~= "string" then
        error("offset must be a string", CALLER - 1)
    elseif options ~= nil and type(options) ~= "table" then
        error("options must be a table when specified", CALLER - 1)
    end
end

local OF_TYPE = {
    string = "string",
    number = "number",
    integer = "number",
    boolean = "boolean",
    foreign = "table",
    array = "table",
    set = "table",
    map = "table",
    record = "table",
}

--- Throws unless a value has its field's type.
function _M.unique(value, name, field, options)
    local wanted = OF_TYPE[field.type]
    if wanted and type(value) ~= wanted then
        error(("%s must be a %s"):format(name, wanted), CALLER - 1)
    elseif options ~= nil and type(options) ~= "table" then
        error("options must be a table when specified", CALLER - 1)
    end
end

--- What is wrong with a primary key.
-- @tparam table key
-- @treturn nil|table fields
function _M.primary_key(key)
    local id = key.id
    if id == nil or id == NULL then
        return { id = "missing primary key" }
    elseif type(id) ~= "string" then
        return { id = "expected a string" }
    elseif not rules.check.uuid(id) then
        return { id = "expected a valid UUID" }
    end
    return nil
end

--- What is wrong with a value by which entities are looked up. Store and images know no text with
-- such a byte, and what is read in C would end there.
-- @param value
-- @treturn nil|string
function _M.looked_up(value)
    local has_nul = type(value) == "string" and value:find("\0", 1, true)
    return has_nul and "must not contain a NUL byte" or nil
end

--- What is wrong with the size of a page.
-- @tparam number|nil size
-- @treturn nil|string
function _M.size(size)
    if size and (floor(size) ~= size or size < 1 or size > _M.MAX_PAGE_SIZE) then
        return "size must be an integer between 1 and " .. _M.MAX_PAGE_SIZE
    end
    return nil
end

local function wrong_ttl(schema, ttl)
    if not schema.expires then
        return ("cannot be used with '%s'"):format(schema.name)
    elseif type(ttl) ~= "number" or floor(ttl) ~= ttl or ttl < 0 or ttl > MAX_TTL then
        return "must be an integer between 0 and " .. MAX_TTL
    end
    return nil
end

local function wrong_tags(has_tags, schema, tags)
    if not has_tags then
        return ("cannot be used with '%s'"):format(schema.name)
    elseif type(tags) ~= "table" then
        return "must be a table"
    elseif #tags > MAX_TAGS then
        return ("cannot query more than %d tags"):format(MAX_TAGS)
    end
    for _, tag in ipairs(tags) do
        if type(tag) ~= "string" or tag == "" or tag:find("[%c,/]") then
            return "must only contain printable ascii (except `,` and `/`) or valid utf-8"
        end
    end
    return nil
end

--- What is wrong with options.
-- @tparam table schema ours
-- @tparam boolean has_tags whether its entities have tags
-- @tparam table|nil options
-- @treturn nil|table option -> what
function _M.options(schema, has_tags, options)
    if not options then
        return nil
    end
    local wrong = {}
    if options.ttl ~= nil then
        wrong.ttl = wrong_ttl(schema, options.ttl)
    end
    if options.tags ~= nil then
        wrong.tags = wrong_tags(has_tags, schema, options.tags)
        local cond = options.tags_cond
        if not wrong.tags and #options.tags > 1 and cond ~= "and" and cond ~= "or" then
            wrong.tags_cond = "must be a either 'and' or 'or' when more than one tag is specified"
        end
    end
    for _, name in ipairs({ "transform", "export", "skip_ttl", "show_ws_id" }) do
        if options[name] ~= nil and type(options[name]) ~= "boolean" then
            wrong[name] = "must be a boolean"
        end
    end
    return next(wrong) and wrong or nil
end

return _M
