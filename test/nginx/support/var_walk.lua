-- A random walk through one request, the same for the same seed: changes whatever Lua can change
-- of a request, and after each change reads some variables in every way that this server has.
-- What was read is kept until the test asks for it.

local cjson = require("cjson")

local _M = {}

local ways = require("ways")

local way_names = {}
for name in pairs(ways) do
    way_names[#way_names + 1] = name
end
table.sort(way_names)

-- Requests come one after the other, to one worker.
local record, state = {}, 1

-- A generator of its own: nothing else of the request draws from it.
local function random(n)
    state = (state * 48271) % 2147483647
    return state % n + 1
end

local function one_of(list)
    return list[random(#list)]
end

local function words(text)
    local found = {}
    for word in text:gmatch("%S+") do
        found[#found + 1] = word
    end
    return found
end

local NAMES = words([[
    args arg_a arg_b arg_long_name arg_none binary_remote_addr body_bytes_sent bytes_sent
    content_length content_type cookie_a cookie_sid cookie_none document_root document_uri host
    hostname http_accept http_cookie http_host http_none http_referer http_user_agent http_via
    http_x_a http_x_thing http_x_forwarded_for https is_args limit_rate made made_of_uri mapped
    mapped_volatile mapped_header nginx_version logged_map query_string realpath_root remote_addr
    remote_user request request_body request_completion request_filename request_length
    request_method request_uri scheme sent_http_etag sent_http_content_length
    sent_http_content_type sent_http_x_out sent_http_none sent_http_cache_control
    sent_http_location server_addr server_name server_protocol status upstream_http_x_up
    upstream_http_none upstream_status upstream_cookie_up upstream_response_length uri
    http_x_cookie_ arg_ http_ cookie_ args_none proxy_host proxy_add_x_forwarded_for
    proxy_protocol_addr Host ARG_A HTTP_X_Thing
]])

local HEADERS = words([[
    X-A X-Thing Cookie Host X-Forwarded-For User-Agent Referer Via Accept Content-Type x_thing
    Content-Length-X
]])

local VALUES = {
    "",
    "1",
    "value",
    "a=b; sid=77",
    "x.example",
    "GET",
    ("long"):rep(80),
    "b\0inary\255",
    " a b ",
}

local ARGS = {
    "",
    "a=1",
    "A=2&a=3",
    "b=&a",
    "xa=1&a=2",
    "long_name=x&b=%20y",
    "a=1&a=2",
    "&&a=5",
    "a",
    "?a=1",
    "a=" .. ("z"):rep(300),
    "b=1&LONG_NAME=q",
}

local PATHS = { "/", "/other", "/p%20q", "/a/b/c", "/" .. ("d"):rep(100) }

local function try(f, ...)
    local ok, err = pcall(f, ...)
    return ok and "ok" or tostring(err):gsub("^.-:%d+: ", "")
end

local function hex(value)
    if value == nil then
        return "nil"
    end
    return type(value) .. ":" .. ngx.encode_base64(value)
end

local function note(...)
    record[#record + 1] = table.concat({ ... }, " ")
end

-- All ways have to agree; what they say is compared with the plain server by the test.
local function read(phase, name)
    local seen
    for _, way in ipairs(way_names) do
        local ok, value = pcall(ways[way].get, name)
        local text = ok and hex(value) or "error " .. tostring(value):gsub("^.-:%d+: ", "")
        if seen and seen ~= text then
            note("DIFFERENT", phase, name, way, text, "not", seen)
        end
        seen = text
    end
    note(phase, name, seen)
end

local function write(name, value)
    local way = random(840) -- whatever the number of ways is, the walk goes on alike
    return try(ways[way_names[way % #way_names + 1]].set, name, value)
end

local EVERYWHERE = {
    function()
        return write(one_of({ "made", "made", "made_of_uri" }), one_of(VALUES))
    end,
    function()
        return write("made", one_of({ 1, 1.5, true, false, -0.1 }))
    end,
    function()
        return write("made", nil)
    end,
    function()
        return write(one_of({ "host", "none", "http_x_a", "uri", "mapped" }), "x")
    end,
    function()
        return write("limit_rate", one_of({ "0", "100000k", "bad" }))
    end,
    function()
        return "nothing"
    end,
}

local REQUEST = {
    function()
        return try(ngx.req.set_uri, one_of(PATHS))
    end,
    function()
        return try(ngx.req.set_uri_args, one_of(ARGS))
    end,
    function()
        return try(ngx.req.set_uri_args, { a = one_of(VALUES) })
    end,
    function()
        return write("args", one_of(ARGS))
    end,
    function()
        return try(ngx.req.set_header, one_of(HEADERS), one_of(VALUES))
    end,
    function()
        return try(ngx.req.set_header, one_of(HEADERS), { "one", "two" })
    end,
    function()
        return try(ngx.req.clear_header, one_of(HEADERS))
    end,
    function()
        return try(ngx.req.set_method, one_of({ ngx.HTTP_GET, ngx.HTTP_PUT, ngx.HTTP_POST }))
    end,
    function()
        return try(ngx.req.read_body)
    end,
    function()
        return try(ngx.req.set_body_data, one_of(VALUES))
    end,
    function()
        return try(ngx.req.get_uri_args) .. try(ngx.req.get_headers)
    end,
}

local RESPONSE = {
    function()
        return try(function()
            ngx.header[one_of({ "X-Out", "ETag", "Content-Type", "Location" })] = one_of(VALUES)
        end)
    end,
    function()
        return try(function()
            ngx.header["Cache-Control"] = one_of({ "no-store", { "a", "b" } })
        end)
    end,
    function()
        return try(function()
            ngx.header["X-Out"] = nil
        end)
    end,
}

local function steps(phase, count, ...)
    for _ = 1, random(count) do
        local doings = one_of({ EVERYWHERE, ... })
        local number = random(#doings)
        note(phase, "does", number, doings[number]())
        for _ = 1, 6 do
            read(phase, one_of(NAMES))
        end
    end
end

--- Begins a walk: the seed is in a header that is then taken away.
function _M.rewrite()
    if not ngx.is_subrequest and ngx.req.get_headers()["x-seed"] then
        state = tonumber(ngx.req.get_headers()["x-seed"])
        record = {}
        ngx.req.clear_header("x-seed")
    end
    steps("rewrite", 3, REQUEST, RESPONSE)
    if random(8) == 1 then
        ngx.req.set_uri("/other", true)
    end
end

function _M.access()
    steps("access", 4, REQUEST, REQUEST, RESPONSE)
    local jump = random(6)
    if jump == 1 then
        return ngx.exec("/other", "a=exec&b=2")
    elseif jump == 2 then
        return ngx.exec("@named")
    elseif jump == 3 then
        return ngx.exec("/elsewhere")
    end
end

function _M.balancer()
    steps("balancer", 2, EVERYWHERE)
    assert(require("ngx.balancer").set_current_peer(_M.upstream))
end

function _M.content()
    steps("content", 2, REQUEST, RESPONSE)
    local reply = ngx.location.capture("/sub", {
        args = one_of(ARGS),
        method = one_of({ ngx.HTTP_GET, ngx.HTTP_POST }),
        share_all_vars = random(2) == 1,
        vars = random(3) == 1 and { made = "of the parent" } or nil,
    })
    note("reply", reply.status, #reply.body)
    steps("content after", 2, REQUEST, RESPONSE)
    ngx.say("done")
    steps("content said", 2, EVERYWHERE)
end

function _M.sub()
    steps("sub", 2, REQUEST, RESPONSE)
    ngx.print("sub")
end

function _M.header_filter()
    steps("header_filter", 2, EVERYWHERE, RESPONSE)
end

function _M.body_filter()
    steps("body_filter", 1, EVERYWHERE)
end

function _M.log()
    steps("log", 2, EVERYWHERE)
    if not ngx.is_subrequest then
        record[#record + 1] = "end"
    end
end

--- Answers with what was read in the last walk.
function _M.tell()
    ngx.print(cjson.encode(record))
end

return _M
