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

-- Headers, and parameters, that an entry has.
local MOST = 100

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

--- What ours says of a list that it has cut: not which lines it has, but that each is one, and that
-- none has come twice or is missing without a word. test_http_log.py has which it keeps.
local function agree(ours, all)
    local left, total = {}, 0
    local function each(headers, visit)
        for name, value in pairs(headers) do
            for _, one in ipairs(type(value) == "table" and value or { value }) do
                visit(name .. ": " .. one)
            end
        end
    end
    -- Of a secret name all values are one there.
    local function countable(headers)
        local out = {}
        for name, value in pairs(headers) do
            out[name] = not redact.is_secret(name) and value or nil
        end
        return out
    end
    each(countable(all), function(line)
        left[line], total = (left[line] or 0) + 1, total + 1
    end)
    each(countable(ours), function(line)
        left[line], total = (left[line] or 0) - 1, total - 1
        assert(left[line] >= 0, "has a line that is none: " .. line)
    end)
    return total
end

local function count(headers)
    local sum = 0
    for _, value in pairs(headers) do
        sum = sum + (type(value) == "table" and #value or 1)
    end
    return sum
end

--- The headers of a request or a response, and how many are left out.
local function headers(get, ours)
    local all = get(0)
    local total = count(all)
    if total <= MOST then
        return redact_headers(all)
    end
    assert(agree(ours.headers, redact_headers(all)) <= ours.headers_omitted, "lacks lines")
    return ours.headers, total - MOST
end

--- The parameters, and how many are left out.
local function parameters(query)
    local all = ngx.decode_args(query, 0)
    local total = count(all)
    local segments = 0
    for _ in (query .. "&"):gmatch("&") do
        segments = segments + 1
    end
    local shown = ngx.decode_args(query)
    return shown, segments > MOST and total - count(shown) or nil
end

local function request(var, ours)
    local shown, omitted = headers(ngx.req.get_headers, ours)
    local querystring, parameters_omitted = parameters(redact.query(var.args or ""))
    local uri = redact.uri(var.request_uri or "")
    return {
        id = var.sluice_request_id,
        uri = uri,
        url = ("%s://%s:%s%s"):format(var.scheme, var.host or "", var.server_port, uri),
        querystring = querystring,
        querystring_omitted = parameters_omitted,
        method = (var.request or ""):match("^([%u_-]+) ") or ngx.req.get_method(),
        headers = shown,
        headers_omitted = omitted,
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
-- @tparam table entities as gateway.pdk.log_entry takes them
-- @tparam table ours the entry that is compared with it, decoded
function _M.encode(entities, ours)
    local var = ngx.var
    local shown, omitted = headers(ngx.resp.get_headers, ours.response)
    local consumer, credential = entities.consumer, entities.credential
    local made = tries(var)
    local is_proxied = made ~= nil and var.sluice_response_via ~= ""
    local json = cjson.encode({
        request = request(var, ours.request),
        response = {
            status = ngx.status,
            headers = shown,
            headers_omitted = omitted,
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
