--- Declarative files, each with a few changes to the one before, some of which are wrong.

local cjson = require("cjson")
local pem = require("test.unit.support.pem")

local _M = {}

--- Numbers by chance: `random(n)` from 1 to n.
function _M.random(seed)
    local state = seed % 2147483646 + 1
    return function(most)
        state = state * 16807 % 2147483647
        return state % most + 1
    end
end

local function id(number)
    return ("00000000-0000-4000-8000-%012d"):format(number)
end

local function copy(value)
    if type(value) ~= "table" then
        return value
    end
    local out = {}
    for key, item in pairs(value) do
        out[key] = copy(item)
    end
    return setmetatable(out, getmetatable(value))
end

local function route(name, path)
    return { name = name, paths = { path or "/" .. name }, tags = { "t", name } }
end

local function service(number)
    local name = "s" .. number
    return {
        name = name,
        host = "u" .. number,
        tags = { "t" },
        routes = { route(name .. "a"), route(name .. "b") },
    }
end

local function upstream(number)
    return {
        name = "u" .. number,
        targets = { { target = "192.0.2.1:80" }, { target = "192.0.2.2:80", weight = 7 } },
    }
end

local function consumer(number)
    return { username = "c" .. number, keyauth_credentials = { { key = "k" .. number } } }
end

-- Lists in the order in which a file has them.
local ORDER = {
    "plugins",
    "ca_certificates",
    "upstreams",
    "services",
    "routes",
    "consumers",
    "consumer_groups",
    "basicauth_credentials",
    "acls",
    "certificates",
}

-- Made once: a key takes its time. Valid since 1970, where the files are posted.
local CERTIFICATES = {}
for i = 1, 3 do
    local cert, key = pem.pair("ec", { is_ca = true, since = 0 })
    CERTIFICATES[i] = { cert = cert, key = key }
end

local function authority(number)
    return { id = id(900 + number), cert = CERTIFICATES[number].cert }
end

--- Variables of the environment that vaults may have.
_M.VARIABLES = { "P1ENDPOINT", "P2ENDPOINT" }

--- The first file.
function _M.model()
    local model = {
        last = 6,
        frame = {},
        services = {},
        upstreams = {},
        consumers = {},
        routes = { { paths = { "/alone" }, service = { name = "s1" } } },
        plugins = {
            { name = "cors", service = "s2", config = { max_age = 5 } },
            { name = "key-auth", route = { name = "s3a" } },
            { name = "request-size-limiting", consumer = "c1", config = {} },
        },
        consumer_groups = { { name = "g1" } },
        basicauth_credentials = { { username = "b1", password = "p1", consumer = "c1" } },
        acls = { { group = "a1", consumer = { username = "c2" } } },
        ca_certificates = { authority(1), authority(2) },
        certificates = {},
    }
    for number = 1, 6 do
        model.services[number], model.upstreams[number] = service(number), upstream(number)
        model.consumers[number] = number < 4 and consumer(number) or nil
    end
    model.services[4].id = id(4)
    return model
end

local function any(list, random)
    return list[random(#list)], #list
end

local function put(list, value, random)
    table.insert(list, random(#list + 1), value)
end

local function route_of(model, random)
    local found = any(model.services, random)
    local one = found and found.routes[1] and any(found.routes, random)
    -- An earlier change may have put anything there.
    return type(one) == "table" and one or route("nowhere")
end

-- What happens to a file. Each as `(model, random, number)`, with a number that was not used yet.
local CHANGES = {
    ["a path"] = function(model, random, number)
        route_of(model, random).paths = { "/p" .. number }
    end,
    ["many paths"] = function(model, random, number)
        route_of(model, random).paths = { "/p" .. number, "/q" .. number, "~/r" .. number .. "$" }
    end,
    ["another path"] = function(model, random, number)
        route_of(model, random).paths = { "/p" .. number }
    end,
    ["a service more"] = function(model, random, number)
        put(model.services, service(number), random)
        put(model.upstreams, upstream(number), random)
    end,
    ["a service with a host"] = function(model, random, number)
        local added = service(number)
        added.host = ({ "host.example", "192.0.2.9", "u1", "other.example" })[random(4)]
        put(model.services, added, random)
    end,
    ["another host"] = function(model, random)
        any(model.services, random).host = ({ "host.example", "192.0.2.9", "u1", "u2" })[random(4)]
    end,
    ["a service less"] = function(model, random)
        if #model.services > 4 then
            table.remove(model.services, random(#model.services))
        end
    end,
    ["an upstream less"] = function(model, random)
        if #model.upstreams > 2 then
            table.remove(model.upstreams, random(#model.upstreams))
        end
    end,
    ["a route more"] = function(model, random, number)
        put(any(model.services, random).routes, route("r" .. number), random)
    end,
    ["a route less"] = function(model, random)
        local found = any(model.services, random)
        table.remove(found.routes, random(#found.routes + 1))
    end,
    ["a route to another service"] = function(model, random, number)
        local from, to = any(model.services, random), any(model.services, random)
        local moved = table.remove(from.routes)
        put(to.routes, moved or route("r" .. number), random)
    end,
    ["targets"] = function(model, random, number)
        local found = any(model.upstreams, random)
        if random(3) == 1 and #found.targets > 1 then
            table.remove(found.targets, random(#found.targets))
        else
            local target = "192.0.2." .. number % 250 + 1 .. ":80"
            target = random(8) == 1 and "target.example:80" or target
            put(found.targets, { target = target }, random)
        end
    end,
    ["another order"] = function(model, random)
        local list = model[any(ORDER, random)]
        if #list > 1 then
            put(list, table.remove(list, random(#list)), random)
        end
    end,
    ["another name"] = function(model, random, number)
        any(model.services, random).name = "s" .. number
    end,
    ["another name of a route"] = function(model, random, number)
        route_of(model, random).name = "r" .. number
    end,
    ["a name less"] = function(model, random)
        route_of(model, random).name = nil
    end,
    ["another id"] = function(model, random, number)
        any(model.services, random).id = random(3) > 1 and id(number) or nil
    end,
    ["the id of another"] = function(model, random)
        any(model.services, random).id = any(model.services, random).id
    end,
    ["an id of a route"] = function(model, random, number)
        route_of(model, random).id = id(random(2) == 1 and number or 1)
    end,
    ["a name that was there"] = function(model, random)
        any(model.services, random).name = any(model.services, random).name
    end,
    ["names that change places"] = function(model, random)
        local one, other = any(model.services, random), any(model.services, random)
        one.name, other.name = other.name, one.name
    end,
    ["twice the same"] = function(model, random)
        put(model.services, copy(any(model.services, random)), random)
    end,
    ["a route at the top"] = function(model, random, number)
        local to = random(6) == 1 and "nobody" or any(model.services, random).name
        local made = { paths = { "/alone" .. number % 3 }, service = { name = to } }
        made.name = random(2) == 1 and "r" .. number or nil
        made.id = random(4) == 1 and id(number) or nil
        put(model.routes, made, random)
    end,
    ["routes at the top less"] = function(model, random)
        table.remove(model.routes, random(#model.routes + 1))
    end,
    ["a plugin"] = function(model, random, number)
        local name = ({ "cors", "key-auth", "rate-limiting" })[random(3)]
        local config = name == "rate-limiting" and { minute = number % 50 } or {}
        local made = { name = name, config = config }
        local of = ({ "service", "route", "consumer", "none" })[random(4)]
        if of == "service" then
            local to = any(model.services, random)
            made.service = random(2) == 1 and to.id or to.name
        elseif of == "route" then
            made.route = route_of(model, random).name
        elseif of == "consumer" then
            made.consumer = "c" .. random(5)
        end
        put(model.plugins, made, random)
    end,
    ["a plugin less"] = function(model, random)
        table.remove(model.plugins, random(#model.plugins + 1))
    end,
    ["a plugin of a service"] = function(model, random, number)
        local found = any(model.services, random)
        found.plugins = { { name = "rate-limiting", config = { minute = number } } }
    end,
    ["a disabled service"] = function(model, random)
        local found = any(model.services, random)
        found.enabled = found.enabled == false
    end,
    ["a consumer"] = function(model, random, number)
        put(model.consumers, consumer(number), random)
        if random(2) == 1 then
            any(model.consumers, random).groups = { { name = "g1" } }
        end
    end,
    ["a key"] = function(model, random, number)
        local found = #model.consumers > 0 and any(model.consumers, random) or consumer(number)
        put(found.keyauth_credentials, { key = "k" .. number % 9 }, random)
    end,
    ["a key that ends"] = function(model, random, number)
        local found = #model.consumers > 0 and any(model.consumers, random) or consumer(number)
        local key = found.keyauth_credentials[1] or {}
        key.ttl = not key.ttl and 100000 or nil
    end,
    ["no key that ends"] = function(model)
        for _, each in ipairs(model.consumers) do
            for _, key in ipairs(each.keyauth_credentials) do
                key.ttl = nil
            end
        end
    end,
    ["a consumer less"] = function(model, random)
        table.remove(model.consumers, random(#model.consumers + 1))
    end,
    ["the id of a consumer"] = function(model, random, number)
        local found = #model.consumers > 0 and any(model.consumers, random) or consumer(number)
        found.id = random(3) > 1 and id(number):gsub("^0", "A") or nil
    end,
    ["a password"] = function(model, random, number)
        local made = { username = "b" .. number % 5, password = "p" .. number % 7 }
        if random(2) == 1 and #model.consumers > 0 then
            any(model.consumers, random).basicauth_credentials = { made }
        else
            made.consumer = "c" .. random(4)
            put(model.basicauth_credentials, made, random)
        end
    end,
    ["another password"] = function(model, random, number)
        local found = any(model.basicauth_credentials, random) or {}
        found.password = "p" .. number
    end,
    ["a password less"] = function(model, random)
        table.remove(model.basicauth_credentials, random(#model.basicauth_credentials + 1))
    end,
    ["a member"] = function(model, random, number)
        local made = { group = "a" .. number % 4 }
        if random(2) == 1 and #model.consumers > 0 then
            any(model.consumers, random).acls = { made }
        else
            made.consumer = "c" .. random(4)
            put(model.acls, made, random)
        end
    end,
    ["a member less"] = function(model, random)
        table.remove(model.acls, random(#model.acls + 1))
    end,
    ["an authority"] = function(model, random)
        put(model.ca_certificates, authority(random(3)), random)
    end,
    ["an authority less"] = function(model, random)
        table.remove(model.ca_certificates, random(#model.ca_certificates + 1))
    end,
    ["a service that trusts"] = function(model, random)
        local found = any(model.services, random)
        found.protocol, found.tls_verify = "https", true
        found.ca_certificates = { id(900 + random(3)) }
    end,
    ["a certificate"] = function(model, random, number)
        local made = copy(CERTIFICATES[random(3)])
        made.snis = { { name = "n" .. number % 6 .. ".example" } }
        put(model.certificates, made, random)
    end,
    ["a certificate less"] = function(model, random)
        table.remove(model.certificates, random(#model.certificates + 1))
    end,
    ["a host in capitals"] = function(model, random)
        any(model.services, random).host = ({ "Host.Example", "host.example", "U1" })[random(3)]
    end,
    ["a plugin with a reference"] = function(model, random)
        local from = ({ "env/P1ENDPOINT", "env/NOWHERE", "my/ENDPOINT" })[random(3)]
        local config = { http_endpoint = ("{vault://%s}"):format(from) }
        put(model.plugins, { name = "http-log", config = config, service = "s1" }, random)
    end,
    ["a group"] = function(model, random, number)
        put(model.consumer_groups, { name = "g" .. number }, random)
    end,
    ["a group less"] = function(model, random)
        if #model.consumer_groups > 1 then
            table.remove(model.consumer_groups, random(#model.consumer_groups))
        end
    end,
    ["https"] = function(model, random)
        local found = any(model.services, random)
        found.protocol = found.protocol == nil and "https" or nil
    end,
    ["a wrong port"] = function(model, random)
        any(model.services, random).port = 99999
    end,
    ["an unknown field"] = function(model, random)
        route_of(model, random).pathes = { "/" }
    end,
    ["no object"] = function(model, random)
        put(any(model.services, random).routes, 5, random)
    end,
    ["a default"] = function(model, random)
        model.frame._info =
            { select_tags = { "x" }, defaults = { service = { retries = random(2) } } }
    end,
    ["no defaults"] = function(model)
        model.frame._info = nil
    end,
    ["a vault"] = function(model, random)
        local config = { prefix = "P" .. random(2) }
        model.frame.vaults = { { name = "env", prefix = "my", config = config } }
    end,
    ["a workspace"] = function(model, random)
        any(model.services, random).ws_id = id(random(2))
    end,
    ["no workspaces"] = function(model)
        for _, each in ipairs(model.services) do
            each.ws_id = nil
        end
    end,
    ["date"] = function(model, random, number)
        any(model.services, random).created_at = random(2) == 1 and number or nil
    end,
}

local NAMES = {}
for name in pairs(CHANGES) do
    NAMES[#NAMES + 1] = name
end
table.sort(NAMES)
-- What keeps a file from being remembered, and what is wrong, comes less often.
local RARE = {
    ["a workspace"] = 8,
    ["a vault"] = 8,
    ["a default"] = 4,
    ["https"] = 4,
    ["a key that ends"] = 8,
    ["twice the same"] = 4,
    ["no object"] = 4,
    ["a wrong port"] = 4,
    ["an unknown field"] = 4,
}

local function drawn(random)
    local name
    repeat
        name = any(NAMES, random)
    until not RARE[name] or random(RARE[name]) == 1
    return name
end

--- A file with one to three changes. Also what they are, for people.
function _M.changed(model, random)
    local next_model, said = copy(model), {}
    for i = 1, ({ 1, 1, 1, 2, 3 })[random(5)] do
        local name = drawn(random)
        next_model.last = next_model.last + 1
        CHANGES[name](next_model, random, next_model.last)
        said[i] = name
    end
    return next_model, table.concat(said, ", ")
end

-- JSON with its keys in order, so that the same is written alike.
local function encode(value)
    if type(value) ~= "table" then
        return cjson.encode(value)
    elseif #value > 0 then
        local parts = {}
        for i, item in ipairs(value) do
            parts[i] = encode(item)
        end
        return "[" .. table.concat(parts, ",") .. "]"
    end
    local keys, parts = {}, {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    for i, key in ipairs(keys) do
        local item = value[key]
        local is_empty = type(item) == "table" and next(item) == nil and key ~= "config"
        parts[i] = cjson.encode(key) .. ":" .. (is_empty and "[]" or encode(item))
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

--- A file as JSON, with blanks by chance.
function _M.text(model, random)
    local parts = { '"_format_version":"3.0"' }
    for _, name in ipairs({ "_info", "vaults" }) do
        local value = model.frame[name]
        parts[#parts + 1] = value and cjson.encode(name) .. ":" .. encode(value) or nil
    end
    for _, kind in ipairs(ORDER) do
        local list = {}
        for i, element in ipairs(model[kind]) do
            list[i] = encode(element)
        end
        local comma = ({ ",", ",", " ,\n" })[random(3)]
        parts[#parts + 1] = cjson.encode(kind) .. ":[" .. table.concat(list, comma) .. "]"
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

return _M
