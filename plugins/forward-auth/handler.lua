--- Asks another server whether a request may pass.
--
-- Whatever goes wrong lets nobody pass: no answer, one too late, too long or malformed, one of a
-- status that is neither a pass nor a refusal.
-- @module plugins.forward-auth.handler

local decisions = require("plugins.forward-auth.decisions")
local endpoint = require("sluice.http_endpoint")
local http_client = require("sluice.http_client")

local concat = table.concat
local gsub = string.gsub
local ipairs = ipairs
local lower = string.lower
local ngx = ngx
local pairs = pairs
local setmetatable = setmetatable
local sort = table.sort
local tostring = tostring
local type = type

-- Of a refusal, which is passed on.
local MAX_BODY_BYTES = 262144

local FAILED = "Authorization service unavailable"

-- Configuration -> what follows from it.
local prepared = setmetatable({}, { __mode = "k" })

-- As servers behind a CGI, or PHP, read names: one spelling is as good as the other.
local function canonical(name)
    return (gsub(lower(name), "[^%w]", "-"))
end

local function set_of(names)
    local set = {}
    for _, name in ipairs(names) do
        set[canonical(name)] = name
    end
    return set
end

local function prepare(conf)
    local target = endpoint.parse(conf.url)
    local found = {
        endpoint = target,
        head = ("GET %s HTTP/1.1\r\nHost: %s\r\n"):format(target.target, target.authority),
        asked = set_of(conf.request_headers),
        upstream = set_of(conf.upstream_headers),
        pass = set_of(conf.pass_headers),
        refusal = set_of(conf.refusal_headers),
        decisions = conf.cache_ttl > 0 and decisions.new() or nil,
    }
    prepared[conf] = found
    return found
end

-- Nothing that a client or another plugin has put into a value begins another line.
local function line(name, value)
    return name .. ": " .. gsub(tostring(value), "%c", " ") .. "\r\n"
end

-- All lines of the headers that the server gets, in their order: it has to see what the service
-- will see.
local function lines_of(headers, wanted)
    local names, lines = {}, {}
    for name in pairs(headers) do
        names[#names + 1] = wanted[canonical(name)] and name or nil
    end
    sort(names)
    for _, name in ipairs(names) do
        local value = headers[name]
        for _, one in ipairs(type(value) == "table" and value or { value }) do
            lines[#lines + 1] = line(name, one)
        end
    end
    return concat(lines)
end

local function forwarded()
    local request = kong.request
    return concat({
        line("X-Forwarded-Method", request.get_method()),
        line("X-Forwarded-Proto", request.get_forwarded_scheme()),
        line("X-Forwarded-Host", request.get_forwarded_host()),
        line("X-Forwarded-Port", request.get_forwarded_port()),
        line("X-Forwarded-Uri", request.get_path_with_query()),
        line("X-Forwarded-For", kong.client.get_forwarded_ip()),
    })
end

-- What of an answer is passed on: name as it is configured -> its lines.
local function collect(into, wanted, name, value)
    local as = wanted[canonical(name)]
    if as then
        into[as] = into[as] or {}
        table.insert(into[as], value)
    end
end

-- A header of one line as its text.
local function singles(headers)
    local found = {}
    for name, values in pairs(headers) do
        found[name] = values[2] and values or values[1]
    end
    return found
end

local function ask(conf, of, lines)
    local up, pass, refusal = {}, {}, {}
    local pieces = { of.head, lines, conf.keepalive == 0 and "Connection: close\r\n\r\n" or "\r\n" }
    local answer, err = http_client.ask(of.endpoint, pieces, {
        pool = "forward-auth",
        timeout_ms = conf.timeout,
        keepalive_ms = conf.keepalive,
        verify = conf.tls_verify,
        max_body_bytes = MAX_BODY_BYTES,
        on_field = function(name, value)
            collect(up, of.upstream, name, value)
            collect(pass, of.pass, name, value)
            collect(refusal, of.refusal, name, value)
        end,
    })
    if not answer then
        return nil, err
    elseif answer.status < 200 or answer.status > 499 then
        return nil, ("%s answered %d"):format(of.endpoint.authority, answer.status)
    end
    return {
        passes = answer.status < 300,
        status = answer.status,
        body = answer.body,
        up = up,
        pass = pass,
        refusal = singles(refusal),
    }
end

-- The service gets what the server has said, and nothing of these names from the client.
local function set_upstream(of, headers, answer)
    local request = kong.service.request
    for name in pairs(headers) do
        if of.upstream[canonical(name)] then
            ngx.req.clear_header(name)
        end
    end
    for name, values in pairs(answer.up) do
        for _, value in ipairs(values) do
            request.add_header(name, value)
        end
    end
end

local function add_to_response(answer)
    for name, values in pairs(answer.pass) do
        for _, value in ipairs(values) do
            kong.response.add_header(name, value)
        end
    end
end

local function decide(conf, of, headers)
    local own, about = lines_of(headers, of.asked), forwarded()
    local key
    if of.decisions then
        local host = line("X-Forwarded-Host", kong.request.get_forwarded_host())
        key = decisions.key((conf.cache_by == "headers" and host or about) .. "\n" .. own)
        local known = of.decisions:find(key)
        if known then
            return known, nil, true
        end
    end
    local answer, err = ask(conf, of, own .. about)
    if key and answer and answer.passes then
        of.decisions:keep(key, answer, conf.cache_ttl)
    end
    return answer, err
end

return {
    VERSION = "0.1.0",
    -- Behind the plugins that say who a consumer is (1030 and above), before those that count.
    PRIORITY = 955,

    -- Nobody is watched where it is not configured (gateway.control.stuck).
    lua_phases = function()
        return { "access" }
    end,

    access = function(_, conf)
        local of = prepared[conf] or prepare(conf)
        local headers = setmetatable(ngx.req.get_headers(0), nil)
        local answer, err, is_kept = decide(conf, of, headers)
        if not answer then
            kong.log.err("no request passes: ", err)
            return kong.response.error(503, FAILED)
        elseif not answer.passes then
            return kong.response.exit(answer.status, answer.body, answer.refusal)
        end
        set_upstream(of, headers, answer)
        if not is_kept then
            add_to_response(answer)
        end
    end,
}
