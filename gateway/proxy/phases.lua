--- One request: match a route, run its plugins, hand it to nginx's proxy.
-- @module gateway.proxy.phases

local abi = require("sluice.abi")
local bit = require("bit")
local base = require("resty.core.base")
local ffi = require("ffi")

local chain = require("gateway.plugin.chain")
local entities = require("gateway.proxy.entities")
local image = require("gateway.proxy.image")
local late_phases = require("gateway.proxy.late_phases")
local pdk = require("gateway.plugin.pdk")
local plans = require("gateway.proxy.plan")
local response = require("gateway.request.response")
local router_path = require("gateway.router.path")
local variables = require("gateway.request.variables")

local byte, find, sub = string.byte, string.find, string.sub
local new_table = require("table.new")
local band = bit.band
local escape = router_path.escape
local normalize = router_path.normalize
local match_route = image.match
local NONE, OK = image.NONE, image.OK
local get_request = base.get_request
local run_access = chain.access

abi.declare([[
int sluice_ctx_lua(void *r);
int sluice_ctx_set_lua(void *r, int place);
int sluice_climb_leaves(const char *path, size_t length, size_t base_length);
int sluice_peer_begin(void *r, uint32_t service, uint32_t route_flags);
int sluice_chain_begin(void *r, const sluice_images_match_t *match);
]])

local C = ffi.C

local DECLINED = -5
-- What sluice_chain_begin returns: a level of late phases, and bits.
local LEVEL, HAS_PLUGINS, REWRITES = 0x03, 0x04, 0x08
local SLASH = byte("/")

local _M = {}

-- What belongs to the image that this worker sees (gateway.proxy.plan); nil before the first.
local live

-- Of the settings: whether some clients may say by which protocol and for which host they ask, the
-- variable that has the protocol, and whether climbs pass: else nginx has refused them
-- (module/nginx/ngx_http_sluice_request.c).
local trusts_clients, forwarded_proto, passes_climbs

-- A request on its way from the entry to a named location. nginx goes there at
-- once, in the same call, so one slot is enough; should anything ever come
-- between, the request does not match and is routed anew.
local pending = { request = nil, plan = nil, prefix = nil, bits = nil, ctx = nil }

-- Contexts of requests whose chain has late phases. nginx forgets ngx.ctx when
-- it jumps to the error page; the request's own context keeps the index here
-- (module/nginx/ngx_http_sluice_ctx.h).
local kept, free = {}, {}

local function keep(ctx)
    local request = get_request()
    if C.sluice_ctx_lua(request) ~= 0 then
        return -- since rewrite
    end
    local place = table.remove(free) or #kept + 1
    if C.sluice_ctx_set_lua(request, place) ~= 0 then
        error("no memory", 0)
    end
    kept[place] = ctx
end

local function release()
    local request = get_request()
    local place = C.sluice_ctx_lua(request)
    if place ~= 0 then
        kept[place] = false
        free[#free + 1] = place
        C.sluice_ctx_set_lua(request, 0)
    end
end

--- Starts without a configuration; the first request finds what is published.
-- @tparam table settings resolved settings
-- @tparam table plugins of gateway.plugin.registry
-- @tparam function vault of gateway.config.vault
-- @tparam function on_failure `(plugin, id, revision, message)`: a plugin cannot do with its
-- configuration
-- @phases init_worker
function _M.init_worker(settings, plugins, vault, on_failure)
    trusts_clients = #settings.trusted_ips > 0
    forwarded_proto = trusts_clients and "sluice_forwarded_proto" or "scheme"
    passes_climbs = not settings.reject_encoded_climbs
    live = nil
    image.open(settings.image_dir)
    entities.init_worker(plugins, vault, on_failure)
    pdk.set_store(entities.store)
    chain.init_worker(plugins, entities.configuration)
    plans.init_worker()
end

-- One request ----------------------------------------------------------------

--- A request on which a route's pattern gave up: no other route is a safe guess.
local function refuse_unknown(found)
    ngx.log(
        ngx.ERR,
        'route "',
        plans.name(found),
        '": a regular expression gave up on a request, which is refused: ',
        image.reason(found.reason)
    )
    return ngx.exit(500)
end

--- What keeps a request from being routed.
local function refuse(rc, found)
    if rc == image.LIMIT or rc == image.PATTERN or rc == image.MEMORY then
        return refuse_unknown(found)
    elseif rc == image.LARGE then
        return ngx.exit(400)
    end
    -- Nothing is published, or this worker cannot map what is: it does not serve what was before.
    return response.error(503, "the configuration cannot be read")
end

--- Gives the request its chain.
-- @tparam cdata|nil found the match; nil: of no route
-- @treturn number bits
local function begin_chain(found)
    local bits = C.sluice_chain_begin(get_request(), found)
    if bits < 0 then
        error("no memory", 0)
    end
    return bits
end

--- Finds the plan of the request in hand in what is published now.
-- @treturn table plan
-- @treturn string|nil what of the path the route strips; nil also for "/" alone, which is the same
-- @treturn number bits of its chain
local function match(path)
    local rc, found = match_route(path)
    if rc == NONE and found.epoch ~= 0 then
        live = plans.live(found.epoch)
        return live.no_route, nil, begin_chain(nil)
    elseif rc ~= OK then
        return refuse(rc, found)
    end
    live = plans.live(found.epoch)
    local bits = begin_chain(found)
    local plan = plans.of(found, band(bits, HAS_PLUGINS) ~= 0)
    local length = found.prefix
    local strips = plan.strip_path and length >= 0 and length ~= 1
    return plan, strips and sub(path, 1, length) or nil, bits
end

--- An https-only route asked by http. Returns if the request came by https.
local function require_https(status)
    if variables[forwarded_proto]:get() == "https" then
        return
    end
    if status == 426 then
        return response.error(426, "Please use HTTPS protocol", {
            ["Connection"] = "Upgrade",
            ["Upgrade"] = "TLS/1.2, HTTP/1.1",
        })
    end
    local host = trusts_clients and variables.sluice_forwarded_host or variables.host
    local location = "https://" .. host:get() .. variables.request_uri:get()
    return response.exit(status, nil, { Location = location })
end

--- The request URI's path, and its query with the question mark, or "".
local function split_uri(request_uri)
    local query_at = find(request_uri, "?", 1, true)
    if not query_at then
        return request_uri, ""
    end
    return sub(request_uri, 1, query_at - 1), sub(request_uri, query_at)
end

--- What the request asks for.
-- @treturn string path as it came
-- @treturn string path, normalised
-- @treturn string query with the question mark, or ""
local function read_target()
    local raw_path, query = split_uri(variables.request_uri:get())
    return raw_path, normalize(raw_path), query
end

--- The query as the plugins have left it (`ngx.req.set_uri_args`).
local function current_query(query)
    local args = variables.args:get() or ""
    if args == "" then
        -- nginx does not tell "/?" from "/".
        return query == "?" and query or ""
    elseif #args + 1 == #query and find(query, args, 2, true) then
        return query
    end
    return "?" .. args
end

--- Whether the upstream may see a way out of its service's path. Where climbs do not pass, that is
-- only where a strip cuts a segment, and dots are left that nobody has seen: `/public` takes
-- `/public..%2fx` for its own.
local function leaves_base(plan, prefix, path, base_path, upstream_path)
    local next_byte = prefix and byte(path, #prefix + 1)
    local is_cut = next_byte and next_byte ~= SLASH and byte(prefix, -1) ~= SLASH
    if not is_cut and (plan.same_path or not passes_climbs) then
        return false
    end
    return C.sluice_climb_leaves(upstream_path, #upstream_path, #base_path) ~= 0
end

--- Sets the variables of nginx.conf that differ from what they begin with.
local function set_upstream_uri(plan, prefix, raw_path, path, asked_query)
    local is_raw = path == raw_path
    local query = current_query(asked_query)
    local unchanged = is_raw and query == asked_query and plan.same_path and not prefix
    if not unchanged then
        local base_path = plan.destination.path
        local upstream_path = router_path.upstream(plan, base_path, path, prefix, is_raw)
        if leaves_base(plan, prefix, path, base_path, upstream_path) then
            return ngx.exit(400)
        end
        variables.sluice_uri:set(upstream_path .. query)
    end
    if asked_query ~= "" then
        variables.sluice_request_path:set(raw_path)
    end
    if prefix then
        variables.sluice_prefix:set(is_raw and prefix or escape(prefix))
    end
end

--- Chooses the peer of the first try, and its Host header.
local function set_peer(plan, destination)
    local rc = C.sluice_peer_begin(get_request(), destination.service, plan.flags)
    if rc == DECLINED then
        -- Gone while a plugin waited.
        return response.error(503, "no Service found with those values")
    elseif rc ~= OK then
        ngx.log(ngx.ERR, "no memory for the request's destination")
        return response.error(500)
    end
end

--- The request's own context, where something will look at it.
local function set_ctx(plan, bits, ctx)
    if band(bits, HAS_PLUGINS) == 0 and not ctx then
        return
    end
    ctx = ctx or new_table(0, 8) -- room for the fields that plugins add
    ctx.plan = plan
    ngx.ctx = ctx
    if band(bits, LEVEL) > 0 then
        keep(ctx)
    end
end

--- From the matched route to nginx's proxy module. May yield where a plugin does.
local function proceed(plan, prefix, bits, ctx, raw_path, path, query)
    set_ctx(plan, bits, ctx)
    if not plan.is_routed then
        return response.error(404, "no Route matched with those values")
    end
    if plan.https_only then
        require_https(plan.redirect_code)
    end
    if band(bits, HAS_PLUGINS) ~= 0 then
        run_access()
    end
    local destination = plan.destination
    if not destination then
        return response.error(503, "no Service found with those values")
    end
    if destination.empty then
        return response.error(503, destination.empty)
    end
    set_upstream_uri(plan, prefix, raw_path, path, query)
    set_peer(plan, destination)
    if destination.scheme_upstream then
        variables.sluice_upstream:set(destination.scheme_upstream)
    end
    local ms = (ngx.now() - ngx.req.start_time()) * 1000
    if ms >= 0.5 then
        variables.sluice_proxy_ms:set(("%d"):format(ms + 0.5))
    end
end

-- Goes to a named location; nginx runs it at once, in this same call.
local function jump(location, plan, prefix, bits, ctx)
    pending.request, pending.plan, pending.prefix = get_request(), plan, prefix
    pending.bits, pending.ctx = bits, ctx
    return ngx.exec(location)
end

--- Goes on with a plan, here or in the location that it asks for.
-- @tparam string|boolean here the named location that the request is in; false: none
local function go_on(here, plan, prefix, bits, ctx, raw_path, path, query)
    local location = plan.locations[band(bits, LEVEL)]
    if location ~= here then
        return jump(location, plan, prefix, bits, ctx)
    end
    return proceed(plan, prefix, bits, ctx, raw_path, path, query)
end

--- Runs the global plugins' rewrite, where there are any, then routes what they have made of it.
-- @tparam string|boolean here the named location that the request is in; false: none
-- @tparam number bits of the chain of no route, which the request has
local function rewrite(here, bits)
    set_ctx(live.no_route, bits, nil)
    chain.rewrite()
    local ctx = ngx.ctx
    local raw_path, path, query = read_target()
    local plan, prefix
    plan, prefix, bits = match(path)
    return go_on(here, plan, prefix, bits, ctx, raw_path, path, query)
end

--- The access phase of `location /`, where every request begins.
-- @phases access
function _M.access()
    local raw_path, path, query = read_target()
    local plan, prefix, bits = match(path)
    if band(bits, REWRITES) ~= 0 then
        bits = begin_chain(nil)
        local location = live.no_route.locations[band(bits, LEVEL)]
        if location then
            -- Their late phases see the request also if rewrite answers it.
            return jump(location, nil, nil, bits, nil)
        end
        return rewrite(false, bits)
    end
    return go_on(false, plan, prefix, bits, nil, raw_path, path, query)
end

--- The access phase of a named location: goes on where the jump left off.
-- @phases access
function _M.access_variant()
    local plan, prefix, bits, ctx = pending.plan, pending.prefix, pending.bits, pending.ctx
    local is_ours = pending.request == get_request()
    pending.request, pending.plan, pending.ctx = nil, nil, nil
    if is_ours and plan then
        local raw_path, path, query = read_target()
        return proceed(plan, prefix, bits, ctx, raw_path, path, query)
    end
    bits = begin_chain(nil)
    return rewrite(live.no_route.locations[band(bits, LEVEL)], bits)
end

--- ngx.ctx; for the page of an error nginx has forgotten it.
local function current_ctx()
    local ctx = ngx.ctx
    if ctx.plan == nil then
        local place = C.sluice_ctx_lua(get_request())
        if place ~= 0 then
            ctx = kept[place]
            ngx.ctx = ctx
        end
    end
    return ctx
end

local function late(phase)
    if current_ctx().plan then
        chain.late(phase)
    end
end

--- @phases header_filter
function _M.header_filter()
    return late("header_filter")
end

--- @phases body_filter
function _M.body_filter()
    return late("body_filter")
end

--- @phases log
function _M.log()
    late("log")
    release()
end

--- Responds to what nginx itself refuses or could not get from the upstream.
-- @phases content
function _M.error_page()
    local epoch = image.look()
    local level = epoch and band(begin_chain(nil), LEVEL) or 0
    if level > 0 then
        -- Refused before it was routed: global plugins still see it.
        keep({ plan = plans.live(epoch).no_route })
        return ngx.exec(late_phases.error_location(level))
    end
    return response.error(ngx.status)
end

return _M
