--- Log entries in Lua: the encoder that the gateway had before it had one in C
-- (module/gateway/log/ngx_http_sluice_log_entry.c), and the answer to whether that one is right.

local address = require("sluice.address")
local cjson = require("cjson.safe")
local redact = require("sluice.redact")
local text = require("gateway.schema.text")

local floor = math.floor
local max = math.max
local ngx = ngx

-- Of each list in $upstream_addr and the like: the separators of tries.
local TRY = "[^,%s]+"

local _M = {}

--- The entity's JSON, without what is unset.
local function encode_entity(entity)
    local shown = {}
    for name, value in pairs(entity) do
        local is_empty = type(value) == "table" and next(value) == nil
        if not is_empty and value ~= cjson.null then
            shown[name] = value
        end
    end
    return cjson.encode(shown)
end

--- JSON is UTF-8; what a client sends need not be. With a pattern of Lua's own the look would take
-- longer than all else here.
local function clean(json)
    if ngx.re.find(json, "[\\x80-\\xff]", "jo") and not text.utf8(json) then
        return (json:gsub("[\128-\255]", "?"))
    end
    return json
end

local function milliseconds(value)
    return value and floor(value * 1000 + 0.5)
end

--- The last of a list of seconds, one a try; nil where it has none ("-").
local function last_seconds(list)
    return list and tonumber(list:match("([%d.]+)%s*$"))
end

--- The seconds of all tries together.
local function all_seconds(list)
    local sum = 0
    for seconds in (list or ""):gmatch("[%d.]+") do
        sum = sum + tonumber(seconds)
    end
    return sum
end

--- The tries of nginx's proxy module: `{ip, port}`, and what the failed ones ended with.
local function tries(var)
    local addresses = var.upstream_addr
    if not addresses then
        return nil
    end
    local out = {}
    for try in addresses:gmatch(TRY) do
        local ip, port = address.split(try)
        if port then
            out[#out + 1] = { ip = ip, port = tonumber(port) }
        end
    end
    local at = 0
    for status in (var.upstream_status or ""):gmatch(TRY) do
        at = at + 1
        if out[at] and at < #out then
            out[at].state, out[at].code = "failed", tonumber(status)
        end
    end
    return #out > 0 and out or nil
end

local function redact_value(value)
    if type(value) ~= "table" then
        return redact.uri(value)
    end
    local values = {}
    for i, one in ipairs(value) do
        values[i] = redact.uri(one)
    end
    return values
end

--- Headers without secrets. A value may be a URI (Referer, Location) with a key in it.
local function redact_headers(headers)
    for name, value in pairs(headers) do
        headers[name] = redact.is_secret(name) and redact.REDACTED or redact_value(value)
    end
    return headers
end

local function request(var)
    local uri = redact.uri(var.request_uri or "")
    return {
        id = var.sluice_request_id,
        uri = uri,
        url = ("%s://%s:%s%s"):format(var.scheme, var.host or "", var.server_port, uri),
        querystring = ngx.decode_args(redact.query(var.args or "")),
        method = (var.request or ""):match("^([%u_-]+) ") or ngx.req.get_method(),
        headers = redact_headers(ngx.req.get_headers()),
        size = tonumber(var.request_length),
        tls = var.ssl_protocol and {
            version = var.ssl_protocol,
            cipher = var.ssl_cipher,
            client_verify = var.ssl_client_verify,
        },
    }
end

--- Milliseconds: of the gateway before it asked the upstream, or for its own response; of the last
-- upstream until its head came (-1: there was none); of that one's body; of all.
local function latencies(var, is_proxied)
    local total = tonumber(var.request_time)
    local head = last_seconds(var.upstream_header_time)
    local whole = last_seconds(var.upstream_response_time)
    return {
        kong = is_proxied and tonumber(var.sluice_proxy_ms)
            or milliseconds(max(0, total - all_seconds(var.upstream_response_time))),
        proxy = milliseconds(head) or -1,
        receive = head and whole and milliseconds(whole - head) or 0,
        request = milliseconds(total),
    }
end

--- The request's entry.
-- @tparam table entities as gateway.request.log_entry takes them
function _M.encode(entities)
    local var = ngx.var
    local consumer, credential = entities.consumer, entities.credential
    local made = tries(var)
    local is_proxied = made ~= nil and var.sluice_response_via ~= ""
    local json = cjson.encode({
        request = request(var),
        response = {
            status = ngx.status,
            headers = redact_headers(ngx.resp.get_headers()),
            size = tonumber(var.bytes_sent),
        },
        latencies = latencies(var, is_proxied),
        tries = made,
        upstream_uri = made and redact.uri(var.sluice_uri) or "",
        upstream_status = var.upstream_status or "",
        authenticated_entity = credential and {
            id = credential.id,
            consumer_id = consumer and consumer.id,
        },
        client_ip = var.remote_addr,
        started_at = milliseconds(ngx.req.start_time()),
        source = is_proxied and "upstream" or "kong",
    })
    local parts = { json:sub(1, -2) }
    local service, route = entities.service, entities.route
    parts[#parts + 1] = route and ',"route":' .. encode_entity(route) or nil
    parts[#parts + 1] = service and ',"service":' .. encode_entity(service) or nil
    parts[#parts + 1] = consumer and ',"consumer":' .. encode_entity(consumer) or nil
    parts[#parts + 1] = "}"
    return clean(table.concat(parts))
end

return _M
