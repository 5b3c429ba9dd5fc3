--- `kong.db.<entity>`: what plugins read and change of one kind of entities, as Kong's DAOs.
--
-- One entity by its id or by what is unique in it is read from what is published, without yielding,
-- where images have that look-up: of plugins' own kinds all, of consumers the id and the username.
-- All else is the control worker's to answer (gateway.kit.db.remote), and may be asked only where a
-- plugin may yield. Where a file is the configuration, changes fail with Kong's words for DB-less.
--
-- Each method returns nil, the error as a text, and the error (gateway.kit.db.errors).
-- @module gateway.kit.db.dao

local bit = require("bit")
local cache_key = require("gateway.entities.cache_key")
local checks = require("gateway.kit.db.dao_checks")
local cjson = require("cjson")
local configuration = require("gateway.kit.configuration")
local dao_schema = require("gateway.kit.db.dao_schema")
local entities = require("gateway.entities")
local draw_uuid = require("gateway.store.files").draw_uuid
local errors = require("gateway.kit.db.errors")
local layout = require("gateway.store.layout")
local phases = require("gateway.kit.phases")
local remote = require("gateway.kit.db.remote")
local rules = require("gateway.schema.rules")

local band = bit.band
local error = error
local min = math.min
local type = type

local NULL = cjson.null
-- The store's.
local MAX_ROWS = 10000

-- Where a plugin may wait.
local YIELDING = phases.set("rewrite", "access", "response", "certificate", "admin_api", "timer")

local _M = {}
local methods = {}

-- What is published, of gateway.proxy.own_entities.
local published

--- Called by the gateway when a worker starts.
-- @local
function _M.use(finder)
    published = finder
end

local function strategy()
    return configuration.view.database
end

local function failed(word, message, fields, name)
    local err = errors.new(word, strategy(), message, fields, name)
    return nil, tostring(err), err
end

-- Asking -----------------------------------------------------------------------------------------

local function check_phase(self, method)
    if band(phases.bit(), YIELDING) == 0 then
        local words = "kong.db.%s:%s() cannot be called in %s phase (only in: %s)"
        local list = table.concat(phases.names(YIELDING), ", ")
        error(words:format(self.schema.name, method, phases.current(), list), 4)
    end
end

-- The answer; or nil, and the error as `failed` has it.
local function ask(self, method, question)
    check_phase(self, method)
    question.kind = self.schema.name
    local answer, err = remote.ask(question)
    if not answer then
        return failed("DATABASE_ERROR", err)
    elseif answer.err then
        local found = answer.err
        return failed(found.code or "DATABASE_ERROR", found.message, found.fields, found.name)
    end
    return answer
end

-- What a plugin gets of an entity.
local function shown(self, entity, options)
    for name in pairs(options and options.nulls and self.schema.fields or {}) do
        if type(name) == "string" and entity[name] == nil then
            entity[name] = NULL
        end
    end
    return entity
end

local function read(self, text, options)
    return shown(self, published.decode(self.schema.name, text), options)
end

-- By an id, a unique field, or "cache_key".
local function find(self, method, by, value, options)
    if published and published.has(self.schema.name, by) then
        local ok, entity = pcall(published.find, self.schema.name, by, value)
        if not ok then
            return failed("DATABASE_ERROR", tostring(entity))
        end
        return entity and shown(self, entity, options)
    end
    local answer, err, err_t = ask(self, method, { verb = "find", by = by, value = value })
    if not answer then
        return nil, err, err_t
    end
    return answer.text and read(self, answer.text, options)
end

local function check_looked_up(name, value)
    local wrong = checks.looked_up(value)
    if wrong then
        return failed("INVALID_UNIQUE", name .. " " .. wrong, nil, "invalid unique " .. name)
    end
    return true
end

local function check_options(self, options)
    local wrong = checks.options(self.definition, self.has_tags, options)
    if wrong then
        return failed(
            "INVALID_OPTIONS",
            ("invalid option (%s)"):format(dao_schema.lines(wrong)),
            wrong
        )
    end
    return true
end

-- The id of a primary key.
local function id_of(key)
    local wrong = checks.primary_key(key)
    if wrong then
        local message = ("invalid primary key: '%s'"):format(errors.key(wrong))
        return failed("INVALID_PRIMARY_KEY", message, wrong)
    end
    return rules.normal_id(key.id)
end

-- Reading ----------------------------------------------------------------------------------------

--- Finds an entity by its id. Does not yield where images find its kind.
-- @tparam table key an entity, or its `{ id = }`
-- @tparam[opt] table options `nulls`
-- @treturn table|nil the caller's own; nil alone: there is none
-- @treturn nil|string
-- @treturn nil|table
function methods:select(key, options)
    checks.tables({ value = key, name = "primary_key" }, nil, options)
    local id, err, err_t = id_of(key)
    if id then
        local ok
        ok, err, err_t = check_options(self, options)
        id = ok and id
    end
    if not id then
        return nil, err, err_t
    end
    return find(self, "select", "id", id, options)
end

local function tags_of(options)
    local tags = options and options.tags
    local separator = options and options.tags_cond == "or" and "/" or ","
    return tags and #tags > 0 and table.concat(tags, separator) or nil
end

local function page(self, method, size, offset, options, where)
    local wrong = checks.size(size)
    if wrong then
        return failed("INVALID_SIZE", wrong)
    end
    local ok, err, err_t = check_options(self, options)
    if not ok then
        return nil, err, err_t
    end
    local answer
    answer, err, err_t = ask(self, method, {
        verb = "page",
        size = min(size or checks.PAGE_SIZE, MAX_ROWS),
        offset = offset,
        tags = tags_of(options),
        where = where,
    })
    if not answer then
        return nil, err, err_t
    end
    local found = {}
    for i, text in ipairs(answer.rows) do
        found[i] = read(self, text, options)
    end
    return found, nil, nil, answer.offset
end

--- A page of its kind, in order of creation. Yields.
-- @tparam[opt=1000] number size at most 50,000; a page may be shorter
-- @tparam[opt] string offset that the page before has given
-- @tparam[opt] table options `tags` with `tags_cond` "and" or "or", `nulls`
-- @treturn {table,...}|nil
-- @treturn nil|string
-- @treturn nil|table
-- @treturn string|nil the next page's offset; nil: this is the last
function methods:page(size, offset, options)
    checks.paging(size, offset, options)
    return page(self, "page", size, offset, options)
end

-- Calls an iterator of which the first failure ends the loop.
local function iterate(next_page)
    local rows, i, offset, number, is_over = {}, 0, nil, 0, false
    return function()
        while not is_over and i >= #rows do
            if number > 0 and not offset then
                return nil
            end
            local found, err, err_t, next_offset = next_page(offset)
            if not found then
                is_over = true
                return false, err, err_t
            end
            rows, i, offset, number = found, 0, next_offset, number + 1
        end
        if is_over then
            return nil
        end
        i = i + 1
        return rows[i], nil, number
    end
end

--- Visits all of its kind: `for entity, err in dao:each() do`; `entity` is false where that failed.
-- Yields at each page.
-- @tparam[opt=1000] number size of pages
-- @tparam[opt] table options as of `page`
-- @treturn function
function methods:each(size, options)
    checks.paging(size, nil, options)
    check_phase(self, "each")
    return iterate(function(offset)
        return page(self, "each", size, offset, options)
    end)
end

methods.each_for_export = methods.each

--- The key of an entity for `kong.cache`: the one that its writer raises.
-- @tparam string|table key an entity, or the first of up to five values
-- @param ... the others, of which each may be nil, and a workspace
-- @treturn string
-- @raise the key is neither
function methods:cache_key(key, ...)
    if type(key) == "string" then
        return cache_key.of_values(self.schema.name, key, ...)
    end
    return cache_key.of_entity(self.schema, key)
end

-- The values that a cache key was made of, as look-ups have them.
local function values_of(self, key)
    local count = #self.schema.cache_key
    local prefix, tail = self.schema.name .. ":", (":"):rep(6 - count)
    if key:sub(1, #prefix) ~= prefix then
        return nil
    end
    -- behind the last colon stands a workspace
    local values = key:sub(#prefix + 1):match("^(.*):[^:]*$")
    local length = #tail - 1
    if not values or (length > 0 and values:sub(-length) ~= tail:sub(1, length)) then
        return nil
    end
    return values:sub(1, #values - length)
end

--- Finds an entity by what `cache_key` makes of it; where that is made of one field, by the value
-- of that field.
-- @tparam string|table key
-- @tparam[opt] table options as of `select`
-- @return as `select`
function methods:select_by_cache_key(key, options)
    local definition = self.schema.cache_key
    if not definition then
        error("entity does not have a cache_key defined", 2)
    elseif #definition == 1 then
        local name = definition[1]
        local value = key
        if type(key) == "table" and self.schema.fields[name].type ~= "foreign" then
            value = key[name]
        end
        return self["select_by_" .. name](self, value, options)
    elseif type(key) ~= "string" then
        key = self:cache_key(key)
    end
    local ok, err, err_t = check_looked_up("cache_key", key)
    if not ok then
        return nil, err, err_t
    end
    local values = values_of(self, key)
    if not values then
        return nil
    end
    return find(self, "select_by_cache_key", "cache_key", values, options)
end

-- Changing ---------------------------------------------------------------------------------------

local DB_LESS = { POST = "create", PATCH = "update", PUT = "create or update", DELETE = "remove" }

-- Makes a change: `key` an id, or with `by` the value of that field.
local function change(self, name, method, key, value, options, by)
    local ok, err, err_t = check_options(self, options)
    if not ok then
        return nil, err, err_t
    elseif strategy() == "off" then
        local words = ("cannot %s '%s' entities"):format(DB_LESS[method], self.schema.name)
        words = by and words .. (" by '%s'"):format(by) or words
        return failed("OPERATION_UNSUPPORTED", words .. " when not using a database")
    end
    local answer
    answer, err, err_t = ask(self, name, {
        verb = "change",
        method = method,
        key = key,
        by = by,
        value = value,
        plugin = phases.plugin(),
        ttl = options and options.ttl,
        is_kept = options and options.transform == false or nil,
    })
    if not answer then
        return nil, err, err_t
    end
    return method == "DELETE" or read(self, answer.text, options)
end

--- Adds an entity. Yields.
-- @tparam table entity without what has a default
-- @tparam[opt] table options `ttl`, seconds
-- @treturn table|nil as it is now
-- @treturn nil|string
-- @treturn nil|table
function methods:insert(entity, options)
    checks.tables(nil, { value = entity }, options)
    local value = {}
    for field, given in pairs(entity) do
        value[field] = given
    end
    -- By it a question that is asked again is known for what was made.
    value.id = (value.id ~= NULL and value.id) or draw_uuid()
    return change(self, "insert", "POST", nil, value, options)
end

local function with_id(self, name, method, key, entity, options)
    local id, err, err_t = id_of(key)
    if not id then
        return nil, err, err_t
    end
    return change(self, name, method, id, entity, options)
end

--- Changes fields of an entity. Yields.
-- @tparam table key an entity, or its `{ id = }`
-- @tparam table entity the fields; ngx.null takes one away
-- @tparam[opt] table options as of `insert`
-- @return as `insert`; the error is "not found" where there is none
function methods:update(key, entity, options)
    checks.tables({ value = key, name = "primary_key" }, { value = entity }, options)
    return with_id(self, "update", "PATCH", key, entity, options)
end

--- Puts an entity in the place of the one with an id, or adds it. Yields.
-- @return as `insert`
function methods:upsert(key, entity, options)
    checks.tables({ value = key, name = "primary_key" }, { value = entity }, options)
    return with_id(self, "upsert", "PUT", key, entity, options)
end

--- Deletes an entity, and what cascades. Yields.
-- @treturn true|nil true also where there was none
-- @treturn nil|string
-- @treturn nil|table
function methods:delete(key, options)
    checks.tables({ value = key, name = "primary_key" }, nil, options)
    return with_id(self, "delete", "DELETE", key, nil, options)
end

--- Nobody deletes all entities of a kind at once.
function methods:truncate()
    return failed("OPERATION_UNSUPPORTED", ("cannot truncate '%s'"):format(self.schema.name))
end

-- Methods of fields ------------------------------------------------------------------------------

-- The text by which a value is looked up.
local function text_of(name, value)
    return layout.key({ field = name }, { [name] = value })
end

local function add_foreign(into, name)
    into["page_for_" .. name] = function(self, key, size, offset, options)
        checks.tables({ value = key, name = "foreign_key" })
        checks.paging(size, offset, options)
        local id, err, err_t = id_of(key)
        if not id then
            return nil, err, err_t
        end
        return page(self, "page_for_" .. name, size, offset, options, { [name] = id })
    end
    into["each_for_" .. name] = function(self, key, size, options)
        checks.tables({ value = key, name = "foreign_key" })
        checks.paging(size, nil, options)
        check_phase(self, "each_for_" .. name)
        return iterate(function(offset)
            local id, err, err_t = id_of(key)
            if not id then
                return nil, err, err_t
            end
            return page(self, "each_for_" .. name, size, offset, options, { [name] = id })
        end)
    end
end

local function change_by(self, verb, method, name, value, entity, options)
    local ok, err, err_t = check_looked_up(name, value)
    if not ok then
        return nil, err, err_t
    end
    local text = text_of(name, value)
    return change(self, verb .. "_by_" .. name, method, text, entity, options, name)
end

local function add_unique(into, name, field)
    into["select_by_" .. name] = function(self, value, options)
        checks.unique(value, name, field, options)
        local ok, err, err_t = check_options(self, options)
        if ok then
            ok, err, err_t = check_looked_up(name, value)
        end
        if not ok then
            return nil, err, err_t
        end
        return find(self, "select_by_" .. name, name, text_of(name, value), options)
    end
    local function changing(verb, method)
        into[verb .. "_by_" .. name] = function(self, value, entity, options)
            checks.unique(value, name, field, options)
            checks.tables(nil, { value = entity }, options)
            return change_by(self, verb, method, name, value, entity, options)
        end
    end
    changing("update", "PATCH")
    changing("upsert", "PUT")
    into["delete_by_" .. name] = function(self, value, options)
        checks.unique(value, name, field, options)
        return change_by(self, "delete", "DELETE", name, value, nil, options)
    end
end

-- The methods that a kind has, under those of its own class.
local function methods_of(definition)
    local found = {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        if field.type == "foreign" then
            add_foreign(found, name)
        end
        if field.unique or name == definition.endpoint_key then
            add_unique(found, name, field)
        end
    end
    return setmetatable(found, { __index = methods })
end

--- Makes that of a kind.
-- @tparam table db `kong.db`
-- @tparam string kind
-- @treturn table
-- @phases any
function _M.new(db, kind)
    local definition = entities.get(kind)
    local super = methods_of(definition)
    local self = {
        db = db,
        schema = dao_schema.new(definition),
        definition = definition,
        super = super,
        pagination = { page_size = checks.PAGE_SIZE, max_page_size = checks.MAX_PAGE_SIZE },
    }
    self.has_tags = self.schema.fields.tags ~= nil
    self.errors = { codes = errors.codes, names = errors.names, strategy = strategy() }
    for name, method in pairs(definition.dao and require(definition.dao) or {}) do
        self[name] = method
    end
    return setmetatable(self, { __index = super })
end

return _M
