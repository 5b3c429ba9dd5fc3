--- The admin listener: what this node is and which entities it serves, as JSON.
--
-- It speaks Kong's Admin API, as clients such as declarative-configuration tools
-- know. Paths that it does not have answer 404, as those clients expect of what a node cannot do.
-- It is the control worker that answers.
-- @module gateway.admin

local batch = require("gateway.admin.batch")
local response = require("gateway.admin.response")
local caller = require("gateway.admin.caller")
local collections = require("gateway.admin.collections")
local config = require("gateway.admin.config")
local config_file = require("gateway.admin.config_file")
local document = require("gateway.config.document")
local dry_run = require("gateway.admin.dry_run")
local entities = require("gateway.admin.entities")
local events = require("gateway.admin.events")
local history = require("gateway.admin.history")
local memberships = require("gateway.admin.memberships")
local metrics = require("gateway.admin.metrics")
local json = require("gateway.schema.json")
local node = require("gateway.admin.node")
local openapi = require("gateway.admin.openapi")
local own_pages = require("gateway.admin.own_pages")
local paths = require("gateway.admin.path")
local schemas = require("gateway.admin.schemas")
local status = require("gateway.admin.status")
local tags = require("gateway.admin.tags")
local timers = require("gateway.admin.timers")
local upstream_health = require("gateway.admin.upstream_health")
local variables = require("gateway.pdk.variables")

local BRACE = ("{"):byte()

local READ_METHODS = "GET, HEAD, OPTIONS"
local READS = { GET = true, HEAD = true, OPTIONS = true }

-- More arguments than any request here has a use for.
local MAX_ARGUMENTS = 20

local _M = {}

--- A page that is read.
local function reading(get)
    return { allowed = READ_METHODS, GET = get, HEAD = get }
end

local VALIDATE = { allowed = "POST, OPTIONS", POST = schemas.validate }

local pages

-- Of Kong's: a slash sorts before all else, so that `/a/z` stands before `/ab`.
local function endpoints(live)
    local list, seen = json.array({}), {}
    local function add(path)
        list[#list + 1] = not seen[path] and path or nil
        seen[path] = true
    end
    for path in pairs(pages) do
        add(path)
    end
    for _, of in ipairs(collections.list()) do
        add(of.path)
    end
    for _, path in ipairs(own_pages.paths(live.plugins)) do
        add(path)
    end
    table.sort(list, function(a, b)
        return a:gsub("/", "\0") < b:gsub("/", "\0")
    end)
    return response.json(200, { data = list })
end

-- Several paths of memberships have the same methods.
local OF_MEMBERS = {
    allowed = "GET, HEAD, OPTIONS, POST, DELETE",
    GET = memberships.list,
    HEAD = memberships.list,
    POST = memberships.post,
    DELETE = memberships.delete,
    is_write = true,
}
local OF_MEMBER = { allowed = "DELETE, OPTIONS", DELETE = memberships.delete, is_write = true }

-- What is not a view of entities, by path: functions by method; `is_write` where they write single
-- entities, `is_entity` where all else that is asked of the path is asked of the entity. A part in
-- braces stands for any. gateway.admin.pages has what is said of them.
pages = {
    ["/"] = reading(function(live)
        return response.json(200, node.describe(live))
    end),
    ["/status"] = reading(status.get),
    ["/events"] = reading(events.get),
    ["/metrics"] = reading(metrics.get),
    ["/timers"] = reading(timers.get),
    ["/plugins/enabled"] = reading(function(live)
        return response.json(200, node.enabled_plugins(live))
    end),
    ["/apply"] = { allowed = "POST, OPTIONS", POST = config.apply, is_write = true },
    ["/batch"] = { allowed = "POST, OPTIONS", POST = batch.post, is_write = true },
    ["/history"] = reading(history.get),
    ["/rollback"] = { allowed = "POST, OPTIONS", POST = history.rollback, is_write = true },
    ["/config"] = {
        allowed = "GET, HEAD, OPTIONS, POST",
        GET = config_file.get,
        HEAD = config_file.get,
        POST = config.post,
    },
    ["/endpoints"] = reading(endpoints),
    ["/openapi.json"] = reading(function(live)
        return response.json(200, openapi.document(live.plugins))
    end),
    ["/tags"] = reading(tags.get),
    ["/tags/{tag}"] = reading(tags.get),
    ["/schemas/{kind}"] = reading(schemas.get),
    ["/schemas/plugins/{name}"] = reading(schemas.get_plugin),
    ["/schemas/vaults/{name}"] = reading(schemas.get_vault),
    ["/schemas/{kind}/validate"] = VALIDATE,
    ["/upstreams/{upstreams}/health"] = reading(upstream_health.get),
    ["/consumer_groups/{consumer_groups}"] = {
        GET = memberships.get,
        HEAD = memberships.get,
        is_entity = true,
    },
    ["/consumer_groups/{consumer_groups}/consumers"] = OF_MEMBERS,
    ["/consumer_groups/{consumer_groups}/consumers/{consumers}"] = OF_MEMBER,
    ["/consumers/{consumers}/consumer_groups"] = OF_MEMBERS,
    ["/consumers/{consumers}/consumer_groups/{consumer_groups}"] = OF_MEMBER,
}

-- Paths with parts in braces, the first that fits: `/schemas/plugins/validate` is no plugin's.
local templates = {
    { "schemas", "{kind}", "validate" },
    { "schemas", "plugins", "{name}" },
    { "schemas", "vaults", "{name}" },
    { "schemas", "{kind}" },
    { "tags", "{tag}" },
    { "upstreams", "{upstreams}", "health" },
    { "consumer_groups", "{consumer_groups}" },
    { "consumer_groups", "{consumer_groups}", "consumers" },
    { "consumer_groups", "{consumer_groups}", "consumers", "{consumers}" },
    { "consumers", "{consumers}", "consumer_groups" },
    { "consumers", "{consumers}", "consumer_groups", "{consumer_groups}" },
}

local function fits(template, segments)
    for i, part in ipairs(template) do
        if part ~= segments[i] and part:byte() ~= BRACE then
            return false
        end
    end
    return #template == #segments
end

local function find_page(segments, method)
    for _, template in ipairs(templates) do
        if fits(template, segments) then
            local page = pages["/" .. table.concat(template, "/")]
            return (page[method] or not page.is_entity) and page or nil
        end
    end
    return pages["/" .. paths.join(segments)]
end

--- Answers one request of the admin listener. Yields.
-- @tparam table live what gateway.control makes of this worker: `read(verb, ...)` and `state()` of
-- gateway.writer.queue; `vault` of gateway.config.vault; `configuration`
-- (gateway.change.configuration); `settings`, `plugins` (the registry), `auth`
-- (gateway.admin.auth), `bus` of events, `timers` (gateway.admin.timers),
-- `plugin_errors` (gateway.control.plugin_errors); `workers()`: pids of the traffic workers, and
-- those of other configurations of nginx; `is_writable`: whether the store is the truth, no file
-- @phases content
function _M.handle(live)
    local who, refused, why, headers = live.auth:check()
    if not who then
        return response.json(refused, { message = why }, headers)
    end
    caller.note(who, live.settings.admin_secrets == "hide")
    local state = live.state()
    if state.state == "left" then
        -- On a connection that was kept open over a reload: its client asks on another.
        return ngx.exit(ngx.HTTP_CLOSE)
    end
    local method = ngx.req.get_method()
    local segments = paths.split(variables.request_uri:get():match("^[^?#]*"))
    if not segments then
        return response.not_found()
    end
    if not (who.can_write or READS[method]) then
        return response.json(403, { message = "this token is read-only" })
    end
    -- Before anything is read, so that the answer is of this revision at least.
    response.set_revision(state.revision)
    local page = find_page(segments, method)
    local own = not page and own_pages.find(live.plugins, segments)
    if page and method == "OPTIONS" then
        return response.options(page.allowed)
    elseif page and page.is_write and not READS[method] and not live.is_writable then
        return response.read_only(READ_METHODS, live.settings)
    elseif page and not page[method] then
        return response.method_not_allowed(page.allowed)
    end
    local args, cut_off = ngx.req.get_uri_args(MAX_ARGUMENTS)
    if cut_off then
        return response.json(
            400,
            { message = ("more than %d query arguments"):format(MAX_ARGUMENTS) }
        )
    end
    refused, why = caller.read_reveal(args)
    if not refused and not READS[method] then
        why = dry_run.read(args)
        refused = why and 400
    end
    if refused then
        return response.json(refused, { message = why })
    elseif page then
        return page[method](live, args, segments)
    elseif own then
        return own_pages.handle(live, own, method, segments, args)
    end
    return entities.handle(live, method, segments, args)
end

--- Answers what nginx refuses by itself: a bad request line, too large headers or bodies.
-- @phases content
function _M.refused()
    if ngx.status == 413 then
        local message = "the body is larger than %d bytes: `sluice restart` reads larger files"
        return response.json(413, { message = message:format(document.MAX_BYTES) })
    end
    return response.refused(ngx.status)
end

return _M
