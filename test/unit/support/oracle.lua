--- The oracle of the router: slow and obvious.
--
-- Tries every path of every route against the request and keeps the one that
-- the rules of `docs/router.md`, read from top to bottom, put first. No index,
-- no packing, no text in common with `module/core` save the engine of regular
-- expressions.
--
-- @usage
-- local best = oracle.match(routes, { method = "GET", host = "a.b", port = 80,
--     path = "/x", headers = { ["x-a"] = "1" } })
-- best.route  -- index into routes
-- best.prefix -- text of the path that matched, nil without paths

local regex = require("test.unit.support.regex")

local _M = {}

local function has_items(list)
    return list ~= nil and next(list) ~= nil
end

local function ends_with(text, tail)
    return #text >= #tail and text:sub(#text - #tail + 1) == tail
end

local function starts_with(text, head)
    return text:sub(1, #head) == head
end

--- "a.b:80" -> "a.b", 80; "[::1]:80" -> "[::1]", 80; "::1" -> "[::1]".
local function split_host(text)
    text = text:lower()
    if text:sub(1, 1) == "[" then
        local close = text:find("]", 1, true)
        return text:sub(1, close), tonumber(text:sub(close + 2))
    end
    local _, colons = text:gsub(":", "")
    if colons > 1 then
        return "[" .. text .. "]", nil
    end
    local colon = text:find(":", 1, true)
    if colon then
        return text:sub(1, colon - 1), tonumber(text:sub(colon + 1))
    end
    return text, nil
end

--- Does one host of a route admit the request?
-- @treturn[1] string "any port" or "its port"
-- @treturn[2] nil
local function admits_host(pattern, request)
    local host, port = split_host(pattern)
    if not request.host or (port and port ~= request.port) then
        return nil
    end
    local ok
    if starts_with(host, "*") then
        ok = ends_with(request.host, host:sub(2)) and #request.host >= #host
    elseif ends_with(host, "*") then
        ok = starts_with(request.host, host:sub(1, -2)) and #request.host >= #host
    else
        ok = request.host == host
    end
    return ok and (port and "its port" or "any port") or nil
end

local function admits_header(wanted, sent)
    if sent == nil then
        return false
    end
    for _, value in ipairs(type(sent) == "table" and sent or { sent }) do
        for _, want in ipairs(wanted) do
            if starts_with(want, "~*") then
                if assert(regex.compile(want:sub(3), { caseless = true })):match(value) then
                    return true
                end
            elseif want:lower() == value:lower() then
                return true
            end
        end
    end
    return false
end

local function admits_headers(route, request)
    for name, wanted in pairs(route.headers or {}) do
        if not admits_header(wanted, request.headers[name:lower()]) then
            return false
        end
    end
    return true
end

local function admits_method(route, request)
    if not has_items(route.methods) then
        return true
    end
    for _, method in ipairs(route.methods) do
        if method == request.method then
            return true
        end
    end
    return false
end

local function admits_sni(route, request)
    if not has_items(route.snis) or not request.is_tls then
        return true
    end
    for _, name in ipairs(route.snis) do
        if admits_host(name, { host = request.sni }) then
            return true
        end
    end
    return false
end

--- @treturn string|nil the text that matched
local function path_text(path, request)
    if starts_with(path, "~") then
        local length = assert(regex.compile(path:sub(2), { anchored = true })):match(request.path)
        return length and request.path:sub(1, length)
    end
    return starts_with(request.path, path) and path or nil
end

local function count_keys(map)
    local n = 0
    for _ in pairs(map or {}) do
        n = n + 1
    end
    return n
end

local function count_kinds(route)
    local n = 0
    for _, field in ipairs({ "methods", "hosts", "headers", "paths", "snis" }) do
        n = n + (has_items(route[field]) and 1 or 0)
    end
    return n
end

local function only_plain_hosts(route)
    if not has_items(route.hosts) then
        return false
    end
    for _, host in ipairs(route.hosts) do
        if host:find("*", 1, true) then
            return false
        end
    end
    return true
end

--- What decides between two candidates, most important first; greater wins.
local function criteria(candidate, route)
    local is_regex = candidate.path ~= nil and starts_with(candidate.path, "~")
    return {
        count_kinds(route),
        only_plain_hosts(route) and 1 or 0,
        count_keys(route.headers),
        is_regex and 1 or 0,
        is_regex and (route.regex_priority or 0) or 0,
        (candidate.path and not is_regex) and #candidate.path or 0,
        candidate.port_given and 1 or 0,
        -route.created_at,
        -candidate.route,
        -candidate.path_index,
    }
end

local function wins(a, b)
    for i = 1, #a.criteria do
        if a.criteria[i] ~= b.criteria[i] then
            return a.criteria[i] > b.criteria[i]
        end
    end
    return false
end

local function candidates_of(index, route, request)
    if
        not admits_method(route, request)
        or not admits_headers(route, request)
        or not admits_sni(route, request)
    then
        return {}
    end
    local host_ok, port_given = not has_items(route.hosts), false
    for _, pattern in ipairs(route.hosts or {}) do
        local how = admits_host(pattern, request)
        host_ok = host_ok or how ~= nil
        port_given = port_given or how == "its port"
    end
    if not host_ok then
        return {}
    end
    if not has_items(route.paths) then
        return { { route = index, path_index = 0, port_given = port_given } }
    end
    local found = {}
    for i, path in ipairs(route.paths) do
        local text = path_text(path, request)
        if text then
            found[#found + 1] = {
                route = index,
                path_index = i,
                path = path,
                prefix = text,
                port_given = port_given,
            }
        end
    end
    return found
end

--- @treturn table|nil the winner, with `route` and `prefix`
function _M.match(routes, request)
    local best
    for index, route in ipairs(routes) do
        for _, candidate in ipairs(candidates_of(index, route, request)) do
            candidate.criteria = criteria(candidate, route)
            if not best or wins(candidate, best) then
                best = candidate
            end
        end
    end
    return best
end

return _M
