--- Pages that plugins bring to the Admin API: their `api.lua`, in Kong's style.
--
-- A pattern such as `/gadgets/:gadgets/paint` has functions by method, `function(self, db,
-- helpers, parent)`, or a table of them as `methods`; and `before`, `on_error`, `schema`. Where
-- entities have the path as well, `parent()` answers as they do, and methods that the pattern lacks
-- are theirs.
-- What one throws is answered 500, and named in the log.
-- @module gateway.admin.own_pages

local body = require("gateway.admin.body")
local endpoints = require("gateway.kit.db.endpoints")
local entities = require("gateway.admin.entities")
local response = require("gateway.admin.response")
local collections = require("gateway.admin.collections")

local METHODS = { "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT" }
local WITH_BODY = { PATCH = true, POST = true, PUT = true }

local _M = {}

-- Read once: the registry is the worker's.
local pages

local function parts_of(pattern)
    local parts, names = {}, 0
    for part in pattern:gmatch("[^/]+") do
        local name = part:match("^:(.+)$")
        names = names + (name and 1 or 0)
        parts[#parts + 1] = { text = part, name = name }
    end
    return parts, names
end

local function add_pages(plugin)
    for pattern, verbs in pairs(plugin.api or {}) do
        if type(pattern) == "string" and type(verbs) == "table" then
            local parts, names = parts_of(pattern)
            pages[#pages + 1] = {
                pattern = pattern,
                parts = parts,
                names = names,
                methods = verbs.methods or verbs,
                plugin = plugin.name,
            }
        end
    end
end

-- Those with fewer names in their pattern first.
local function load(registry)
    pages = {}
    for _, plugin in ipairs(registry:list()) do
        add_pages(plugin)
    end
    table.sort(pages, function(a, b)
        if a.names ~= b.names then
            return a.names < b.names
        end
        return a.pattern < b.pattern
    end)
end

local function fits(page, segments)
    if #page.parts ~= #segments then
        return false
    end
    for i, part in ipairs(page.parts) do
        if not part.name and part.text ~= segments[i] then
            return false
        end
    end
    return true
end

--- The page of a path.
-- @tparam table registry of plugins
-- @tparam {string,...} segments of the path, unescaped
-- @treturn table|nil for `handle`
-- @phases content
function _M.find(registry, segments)
    if not pages then
        load(registry)
    end
    for _, page in ipairs(pages) do
        if fits(page, segments) then
            return page
        end
    end
    return nil
end

--- The paths, for the list of all.
-- @tparam table registry of plugins
-- @treturn {string,...} with names in braces
-- @phases content
function _M.paths(registry)
    if not pages then
        load(registry)
    end
    local found = {}
    for i, page in ipairs(pages) do
        found[i] = page.pattern:gsub(":([^/]+)", "{%1}")
    end
    return found
end

local function copy(into, from)
    for key, value in pairs(from) do
        into[key] = value
    end
    return into
end

-- What a handler is given as `self`; nil, where the body is refused.
local function request_of(page, method, segments, args)
    local self = {
        params = copy({}, args),
        args = { uri = copy({}, args), post = {} },
        req = { method = method, headers = ngx.req.get_headers() },
    }
    if WITH_BODY[method] then
        local sent, refusal = body.read(body.MAX_BYTES)
        if not sent then
            return nil, refusal
        end
        self.sent = sent
        self.args.post = sent.value
        self.json = not sent.is_form and sent.value or nil
        copy(self.params, sent.value)
    end
    for i, part in ipairs(page.parts) do
        if part.name then
            self.params[part.name] = segments[i]
        end
    end
    return self
end

-- The path as a handler has left it.
local function segments_of(page, self)
    local segments = {}
    for i, part in ipairs(page.parts) do
        local value = part.text
        if part.name then
            value = self.params[part.name]
            value = type(value) == "table" and value.id or tostring(value)
        end
        segments[i] = value
    end
    return segments
end

-- Methods that a path has, as in an Allow header.
local function allowed(page)
    local names = {}
    for _, method in ipairs(METHODS) do
        local is_there = page.methods[method] or method == "OPTIONS"
        is_there = is_there or (method == "HEAD" and page.methods.GET)
        names[#names + 1] = is_there and method or nil
    end
    return table.concat(names, ", ")
end

local helpers = {
    yield_error = function(err)
        error(err, 0)
    end,
}

local function run(live, page, self, method)
    local db = rawget(_G, "kong").db
    local function parent()
        local sent = self.sent
        if sent then
            sent.value = self.args.post
        end
        return entities.handle(live, method, segments_of(page, self), self.args.uri, sent)
    end
    local methods = page.methods
    if methods.before then
        methods.before(self, db, helpers)
    end
    local handler = methods[method] or (method == "HEAD" and methods.GET)
    local has_parent = collections.find(segments_of(page, self)) ~= nil
    if handler then
        return handler(self, db, helpers, has_parent and parent or nil)
    elseif method == "OPTIONS" then
        return response.options(allowed(page))
    elseif has_parent then
        return parent()
    end
    return response.method_not_allowed(allowed(page))
end

local function answer_failure(page, self, err)
    if page.methods.on_error then
        self.errors = { err }
        return page.methods.on_error(self)
    elseif type(err) == "table" and err.code then
        return endpoints.handle_error(err)
    end
    local text = type(err) == "table" and err.message or err
    ngx.log(ngx.ERR, "plugin '", page.plugin, "' failed in admin_api: ", tostring(text))
    if not ngx.headers_sent then
        return response.json(500, { message = "An unexpected error occurred" })
    end
end

--- Answers a request of a plugin's page. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table page of `find`
-- @tparam string method
-- @tparam {string,...} segments of the path, unescaped
-- @tparam table args arguments of the query
-- @phases content
function _M.handle(live, page, method, segments, args)
    local self, refusal = request_of(page, method, segments, args)
    if not self then
        return response.json(refusal.status, { message = refusal.message })
    end
    local ok, err = pcall(run, live, page, self, method)
    if not ok then
        return answer_failure(page, self, err)
    end
end

return _M
