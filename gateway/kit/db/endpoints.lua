--- `kong.api.endpoints`: what the `api.lua` of plugins is made of, over `kong.db`.
--
-- An endpoint is `function(self, db, helpers)`: `self.params` has the parts of the path by the
-- names in its pattern, `self.args.uri` and `self.args.post` what was sent. Each of these answers,
-- and ends the request. All yield.
-- @module gateway.kit.db.endpoints

local cjson = require("cjson")
local entities = require("gateway.entities")
local errors = require("gateway.kit.db.errors")
local json = require("gateway.schema.json")
local responses = require("gateway.pdk.response")
local rules = require("gateway.schema.rules")
local schemas = require("gateway.schema")

local type = type

local JSON = "application/json; charset=utf-8"
local NULL = cjson.null

local CODES = errors.codes

-- As of Kong's.
local STATUS = {
    [CODES.INVALID_PRIMARY_KEY] = 400,
    [CODES.SCHEMA_VIOLATION] = 400,
    [CODES.PRIMARY_KEY_VIOLATION] = 400,
    [CODES.FOREIGN_KEY_VIOLATION] = 400,
    [CODES.UNIQUE_VIOLATION] = 409,
    [CODES.NOT_FOUND] = 404,
    [CODES.INVALID_OFFSET] = 400,
    [CODES.INVALID_SIZE] = 400,
    [CODES.INVALID_UNIQUE] = 400,
    [CODES.INVALID_OPTIONS] = 400,
    [CODES.OPERATION_UNSUPPORTED] = 405,
    [CODES.FOREIGN_KEYS_UNRESOLVED] = 400,
    [CODES.REFERENCED_BY_OTHERS] = 400,
}

local PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000

local _M = {}

-- Answers, and ends the request.
local function exit(status, body)
    return responses.write(status, body and json.encode(body), body and JSON)
end

-- An entity as clients are shown it, its empty lists among them.
local function shown(schema, entity)
    return schemas.to_json_entity(entities.get(schema.name), entity)
end

local function not_found()
    return exit(404, { message = "Not found" })
end

--- Answers with an error of `kong.db`; one that is nobody's fault who asked is for the log.
-- @tparam table|string err
function _M.handle_error(err)
    local status = type(err) == "table" and STATUS[err.code]
    if not status then
        ngx.log(ngx.ERR, "api.lua: ", tostring(err))
        return exit(500, { message = "An unexpected error occurred" })
    end
    local found = {}
    for name, value in pairs(err) do
        found[name] = name ~= "strategy" and value or nil
    end
    return exit(status, found)
end

--- The size that a client asks for.
-- @tparam table args
-- @treturn number|nil
-- @treturn string|nil what is wrong
function _M.get_page_size(args)
    local size = args.size
    if size ~= nil and not tonumber(size) then
        return nil, "size must be a number"
    end
    return tonumber(size)
end

-- "a,b": both; "a/b": one of them.
local function read_tags(args, options)
    local text = type(args.tags) == "table" and args.tags[1] or args.tags
    local separator = text:find("/", 1, true) and "/" or ","
    options.tags, options.tags_cond = {}, separator == "/" and "or" or "and"
    for tag in text:gmatch("[^" .. separator .. "]+") do
        options.tags[#options.tags + 1] = tag
    end
    args.tags = nil
end

--- The options of a method of `kong.db`.
-- @tparam table db
-- @tparam table args of the client; what is an option is taken out
-- @tparam table schema
-- @tparam string context "page", "insert", "update", "upsert", "select" or "delete"
-- @treturn table
function _M.extract_options(_, args, schema, context)
    local options = {
        nulls = true,
        pagination = { page_size = PAGE_SIZE, max_page_size = MAX_PAGE_SIZE },
    }
    if args and schema and context == "page" then
        if type(args.tags) == "string" or type(args.tags) == "table" then
            read_tags(args, options)
        end
    elseif args and schema and schema.ttl and args.ttl ~= nil then
        options.ttl, args.ttl = tonumber(args.ttl) or args.ttl, nil
    end
    return options
end

local WITH_VALUE = { update = true, upsert = true }

-- An argument of a path as the field has it.
local function typed(value, field)
    if field.type == "integer" or field.type == "number" then
        return tonumber(value) or value
    end
    return value
end

-- Calls the method of an entity that a path names.
local function call(context, self, db, schema, method)
    local dao, value = db[schema.name], nil
    local args = self.args[WITH_VALUE[context] and "post" or "uri"]
    local options = _M.extract_options(db, args, schema, context)
    if WITH_VALUE[context] then
        value = args
    end
    local key = self.params[schema.name]
    if type(key) ~= "table" then
        key = { id = key }
    end
    local name = schema.endpoint_key
    if key.id and name and not rules.check.uuid(key.id) then
        method = method or context .. "_by_" .. name
        key = typed(key.id, schema.fields[name])
    end
    if value then
        return dao[method or context](dao, key, value, options)
    end
    return dao[method or context](dao, key, options)
end

--- The entity that a path names: as `kong.db`'s `select`.
function _M.select_entity(self, db, schema, method)
    return call("select", self, db, schema, method)
end

--- Changes it by what was sent.
function _M.update_entity(self, db, schema, method)
    return call("update", self, db, schema, method)
end

--- Puts what was sent in its place.
function _M.upsert_entity(self, db, schema, method)
    return call("upsert", self, db, schema, method)
end

--- Deletes it.
function _M.delete_entity(self, db, schema, method)
    return call("delete", self, db, schema, method)
end

--- Adds what was sent.
function _M.insert_entity(self, db, schema, method)
    local dao = db[schema.name]
    local options = _M.extract_options(db, self.args.post, schema, "insert")
    return dao[method or "insert"](dao, self.args.post, options)
end

--- A page of a kind, or of what one entity has: as `kong.db`'s `page`.
function _M.page_collection(self, db, schema, method)
    local args = self.args.uri
    local options = _M.extract_options(db, args, schema, "page")
    local size, err = _M.get_page_size(args)
    if err then
        local err_t = errors.new("INVALID_SIZE", db.strategy, err)
        return nil, tostring(err_t), err_t
    end
    local dao = db[schema.name]
    size = size or PAGE_SIZE
    if size > MAX_PAGE_SIZE then
        err = "size must be an integer between 1 and " .. MAX_PAGE_SIZE
        local err_t = errors.new("INVALID_SIZE", db.strategy, err)
        return nil, tostring(err_t), err_t
    elseif method then
        return dao[method](dao, self.params[schema.name], size, args.offset, options)
    end
    return dao:page(size, args.offset, options)
end

-- Answers with the result of a method, or with its error.
local function answer(status, schema, entity, err_t)
    if err_t then
        return _M.handle_error(err_t)
    elseif not entity then
        return not_found()
    end
    return exit(status, shown(schema, entity))
end

-- The entity that a path begins with; answers where there is none.
local function parent_of(self, db, schema)
    local found, _, err_t = _M.select_entity(self, db, schema)
    if err_t or not found then
        return nil, answer(200, schema, nil, err_t)
    end
    return found
end

local function page_answer(path, schema, page, offset)
    local data = json.array({})
    for i, entity in ipairs(page) do
        data[i] = shown(schema, entity)
    end
    local next_page = offset and ("%s?offset=%s"):format(path, ngx.escape_uri(offset)) or NULL
    return exit(200, {
        data = data,
        offset = offset,
        next = next_page,
    })
end

local function path_of(schema)
    return schema.admin_api_name or schema.name
end

--- An endpoint that lists a kind, or what one entity has of it.
-- @tparam table schema
-- @tparam[opt] table foreign_schema of the kind that owns
-- @tparam[opt] string foreign_field_name that names the owner
-- @tparam[opt] string method of `kong.db` in place of the usual one
-- @treturn function
function _M.get_collection_endpoint(schema, foreign_schema, foreign_field_name, method)
    return function(self, db)
        local path = "/" .. path_of(schema)
        if foreign_schema then
            local owner = parent_of(self, db, foreign_schema)
            if not owner then
                return
            end
            self.params[schema.name] = { id = owner.id }
            method = method or "page_for_" .. foreign_field_name
            local nested = schema.admin_api_nested_name or path_of(schema)
            path = ("/%s/%s/%s"):format(path_of(foreign_schema), owner.id, nested)
        end
        local page, _, err_t, offset = _M.page_collection(self, db, schema, method)
        if err_t then
            return _M.handle_error(err_t)
        end
        return page_answer(path, schema, page, offset)
    end
end

--- An endpoint that adds an entity; arguments as of `get_collection_endpoint`.
function _M.post_collection_endpoint(schema, foreign_schema, foreign_field_name, method)
    return function(self, db, _, post_process)
        if foreign_schema then
            local owner = parent_of(self, db, foreign_schema)
            if not owner then
                return
            end
            self.args.post[foreign_field_name] = { id = owner.id }
        end
        local entity, _, err_t = _M.insert_entity(self, db, schema, method)
        if entity and post_process then
            entity, _, err_t = post_process(entity)
        end
        return answer(201, schema, entity, err_t)
    end
end

-- Points the path at what an entity refers to, or looks whether what it names is the entity's.
local function lead(self, db, schema, foreign_schema, field, is_reference)
    if not foreign_schema then
        return schema
    end
    local owner = parent_of(self, db, schema)
    if not owner then
        return nil
    elseif is_reference then
        if type(owner[field]) ~= "table" then
            return nil, not_found()
        end
        self.params[foreign_schema.name] = { id = owner[field].id }
        return foreign_schema
    end
    local child = parent_of(self, db, foreign_schema)
    if not child then
        return nil
    elseif type(child[field]) ~= "table" or child[field].id ~= owner.id then
        return nil, not_found()
    end
    self.params[foreign_schema.name] = { id = child.id }
    return foreign_schema, owner
end

local function entity_endpoint(verb, status)
    return function(schema, foreign_schema, field, method, is_reference)
        return function(self, db)
            local of = lead(self, db, schema, foreign_schema, field, is_reference)
            if of then
                local entity, _, err_t = _M[verb](self, db, of, method)
                return answer(status, of, entity, err_t)
            end
        end
    end
end

--- Endpoints of one entity: `(schema, foreign_schema, foreign_field_name, method,
-- is_foreign_entity_endpoint)`. With a foreign schema it is that kind's: what the entity of the
-- path refers to, or what it owns.
_M.get_entity_endpoint = entity_endpoint("select_entity", 200)
_M.patch_entity_endpoint = entity_endpoint("update_entity", 200)
_M.put_entity_endpoint = entity_endpoint("upsert_entity", 200)

--- As those, of a deletion.
function _M.delete_entity_endpoint(schema, foreign_schema, field, method, is_reference)
    return function(self, db)
        if is_reference then
            return exit(405, { message = "Method not allowed" })
        end
        local of = lead(self, db, schema, foreign_schema, field)
        if of then
            local _, _, err_t = _M.delete_entity(self, db, of, method)
            if err_t then
                return _M.handle_error(err_t)
            end
            return exit(204)
        end
    end
end

--- An endpoint that is not there.
_M.disable = { before = not_found }

return _M
