--- From routes to entries in the order of precedence.
--
-- An entry is one pair of a host and a path of a route, with the route's other
-- conditions. `docs/router.md` has the precedence with its reasons.
--
-- @module gateway.router.entries

local regex = require("gateway.router.regex")

local byte, find, format, gsub = string.byte, string.find, string.format, string.gsub
local lower, match, sub = string.lower, string.match, string.sub
local concat = table.concat
local min, max = math.min, math.max

local STAR, TILDE = byte("*"), byte("~")
local OPEN_CLASS, OPEN, CLOSE = byte("[()", 1, 3)

-- The precedence as one number, the greatest wins. From the top: number of
-- kinds of conditions, only plain hosts, number of headers, then the path's
-- place, then an explicit port. 47 bits, so that a double holds it exactly.
--
-- A path's place: prefixes by length, above them regular expressions by their
-- priority.
local MAX_LENGTH = 2 ^ 19 - 1
local MAX_PRIORITY = 2 ^ 31 - 1
local REGEX_BASE = 2 ^ 33
local PORT_UNIT = 1
local PATH_UNIT = 2
local HEADER_UNIT = PATH_UNIT * 2 ^ 34
local MAX_HEADERS = 255
local PLAIN_UNIT = HEADER_UNIT * 2 ^ 8
local WEIGHT_UNIT = PLAIN_UNIT * 2

local NO_HOST = { kind = "none" }
local NO_PATH = { key = "", place = 0 }

local _M = {}

local function is_set(list)
    return list ~= nil and next(list) ~= nil
end

--- Take a route's host apart: lower case, port off, brackets around IPv6.
-- @treturn string host
-- @treturn number|nil port
local function split_host(text)
    local host = lower(text)
    local bracketed, rest = match(host, "^(%b[])(.*)$")
    if bracketed then
        return bracketed, tonumber(match(rest, "^:(%d+)$"))
    end
    local name, port = match(host, "^([^:]*):(%d+)$")
    if name then
        return name, tonumber(port)
    end
    if find(host, ":", 1, true) then
        return "[" .. host .. "]"
    end
    return host
end

local function parse_host(text)
    local host, port = split_host(text)
    if byte(host) == STAR then
        return { kind = "tail", host = sub(host, 2), port = port }
    elseif byte(host, -1) == STAR then
        return { kind = "head", host = sub(host, 1, -2), port = port }
    end
    return { kind = "exact", host = host, port = port }
end

--- Could one of the pattern's alternatives begin differently from its text?
-- True when in doubt. One pass: a pattern may be as long as the file.
local function has_top_level_choice(pattern)
    if not find(pattern, "|", 1, true) then
        return false
    end
    if find(pattern, "\\Q", 1, true) or find(pattern, "[[", 1, true) then
        return true
    end
    local rest = gsub(pattern, "\\.", "")
    -- A comment, or the option x that begins some
    if find(rest, "(?#", 1, true) or find(rest, "%(%?%^?%a*x") then
        return true
    end
    local depth, at = 0, 1
    while true do
        at = find(rest, "[[()|]", at)
        local char = byte(rest, at or #rest + 1)
        if not at then
            return depth ~= 0
        elseif char == OPEN_CLASS then
            at = match(rest, "^%[%^?%]?[^%]]*()", at)
        elseif char == OPEN then
            depth = depth + 1
        elseif char == CLOSE then
            depth = depth - 1
        elseif depth == 0 then
            return true
        end
        at = at + 1
    end
end

--- The text with which everything begins that the pattern matches.
-- May be shorter than possible, never longer: it only narrows the search.
local function literal_head(pattern)
    if has_top_level_choice(pattern) then
        return ""
    end
    local head, at = {}, 1
    while true do
        local literal, escaped = match(pattern, "^([%w/_%-~%%:@!&',;=<>\"# ])()", at)
        if not literal then
            -- A backslash before punctuation makes it stand for itself.
            literal, escaped = match(pattern, "^\\(%p)()", at)
        end
        if not literal or find(pattern, "^[*?+{]", escaped) then
            return concat(head)
        end
        at = escaped
        head[#head + 1] = literal
    end
end

local function parse_path(text, route, compiled)
    if byte(text) ~= TILDE then
        return { key = text, prefix = text, place = min(#text, MAX_LENGTH) }
    end
    local pattern = sub(text, 2)
    local re = compiled[pattern]
    if not re then
        local err
        re, err = regex.compile(pattern, { anchored = true })
        if not re then
            return nil, format("invalid regex '%s': %s", pattern, err)
        end
        compiled[pattern] = re
    end
    local priority = max(-MAX_PRIORITY, min(MAX_PRIORITY, route.regex_priority or 0))
    return { key = literal_head(pattern), regex = re, place = REGEX_BASE + MAX_PRIORITY + priority }
end

local function parse_list(list, none, parse, ...)
    if not is_set(list) then
        return { none }
    end
    local parsed = {}
    for i, text in ipairs(list) do
        local item, err = parse(text, ...)
        if not item then
            return nil, err
        end
        parsed[i] = item
    end
    return parsed
end

local function parse_methods(list)
    if not is_set(list) then
        return nil
    end
    local set = {}
    for _, name in ipairs(list) do
        set[name] = true
    end
    return set
end

--- Conditions on headers, in the order of their names.
local function parse_headers(map)
    if not is_set(map) then
        return nil
    end
    local conditions = {}
    for name, list in pairs(map) do
        local values, patterns = {}, {}
        for _, value in ipairs(list) do
            if sub(value, 1, 2) == "~*" then
                local re, err = regex.compile(sub(value, 3), { caseless = true, one_limit = true })
                if not re then
                    return nil, format("invalid regex '%s': %s", value, err)
                end
                patterns[#patterns + 1] = re
            else
                values[#values + 1] = lower(value)
            end
        end
        name = gsub(lower(name), "_", "-")
        conditions[#conditions + 1] = { name = name, values = values, patterns = patterns }
    end
    table.sort(conditions, function(a, b)
        return a.name < b.name
    end)
    return conditions
end

--- The part of the precedence that all entries of a route share.
local function route_score(route, hosts, headers)
    local weight = 0
    for _, field in ipairs({ "methods", "hosts", "headers", "paths" }) do
        if is_set(route[field]) then
            weight = weight + 1
        end
    end
    local plain = is_set(route.hosts) and 1 or 0
    for _, host in ipairs(hosts) do
        if host.kind ~= "exact" then
            plain = 0
        end
    end
    local count = min(headers and #headers or 0, MAX_HEADERS)
    return weight * WEIGHT_UNIT + plain * PLAIN_UNIT + count * HEADER_UNIT
end

local function note_needs(needs, entry)
    needs.host = needs.host or entry.host_kind ~= "none"
    needs.port = needs.port or entry.port ~= nil
    needs.method = needs.method or entry.methods ~= nil
    needs.headers = needs.headers or entry.headers ~= nil
end

local function before(a, b)
    if a.score ~= b.score then
        return a.score > b.score
    elseif a.created_at ~= b.created_at then
        return a.created_at < b.created_at
    end
    return a.order < b.order
end

local function expand_route(route, value, compiled, list, needs)
    local paths, err = parse_list(route.paths, NO_PATH, parse_path, route, compiled)
    if not paths then
        return nil, err
    end
    local headers, header_err = parse_headers(route.headers)
    if header_err then
        return nil, header_err
    end
    local hosts = parse_list(route.hosts, NO_HOST, parse_host)
    local method_set = parse_methods(route.methods)
    local score = route_score(route, hosts, headers)
    local created_at = route.created_at or 0

    for _, path in ipairs(paths) do
        for _, host in ipairs(hosts) do
            local entry = {
                value = value,
                host_kind = host.kind,
                host = host.host,
                port = host.port,
                key = path.key,
                prefix = path.prefix,
                regex = path.regex,
                methods = method_set,
                headers = headers,
                score = score + path.place * PATH_UNIT + (host.port and PORT_UNIT or 0),
                created_at = created_at,
                order = #list + 1,
            }
            list[#list + 1] = entry
            note_needs(needs, entry)
        end
    end
    return true
end

--- Expand routes to entries, the one that wins over all others first.
--
-- @tparam table routes
-- @tparam table values
-- @treturn[1] table array of entries
-- @treturn[1] table what of a request the entries look at, see `gateway.router`
-- @treturn[2] nil
-- @treturn[2] string a regular expression that does not compile, and why
-- @phases any
function _M.expand(routes, values)
    local list, compiled = {}, {}
    local needs = { host = false, method = false, headers = false, port = false }
    for i, route in ipairs(routes) do
        local ok, err = expand_route(route, values[i], compiled, list, needs)
        if not ok then
            return nil, err
        end
    end
    table.sort(list, before)
    return list, needs
end

return _M
