--- What resty.http does with the request in hand: its body, and a response for its client.
-- @module resty.http.downstream

local body = require("resty.http.body")
local head = require("resty.http.head")
local http_response = require("sluice.http_response")

local ngx = ngx
local pairs = pairs
local pcall = pcall
local tonumber = tonumber

-- How much is read at a time where the caller does not say, and at most.
local PIECE_BYTES, MAX_PIECE_BYTES = 65536, 64 * 1024 * 1024

-- What is between one server and its client, and not for the next one (RFC 9110 7.6.1).
local HOP_BY_HOP = {
    connection = true,
    ["content-length"] = true,
    ["keep-alive"] = true,
    ["proxy-authenticate"] = true,
    ["proxy-authorization"] = true,
    te = true,
    trailer = true,
    trailers = true,
    ["transfer-encoding"] = true,
    upgrade = true,
}

local _M = {}

local function nothing() end

-- nginx's reader of the request's body, which is bounded by client_max_body_size.
local function source_of_socket(sock)
    return {
        response = http_response.new(function(max_bytes)
            return sock:receiveany(max_bytes)
        end),
        max_bytes = MAX_PIECE_BYTES,
        start = nothing,
        ended = nothing,
    }
end

--- A reader of the body that the client of the request in hand sends.
-- @tparam[opt=65536] number piece_bytes
-- @tparam[opt] table sock another socket to read from
-- @tparam[opt] table headers of what is read there
-- @treturn function|nil nil: it has none
-- @treturn string|nil
-- @phases rewrite, access, content
function _M.get_client_body_reader(_, piece_bytes, sock, headers)
    piece_bytes = piece_bytes or PIECE_BYTES
    if not sock then
        local ok, err
        ok, sock, err = pcall(ngx.req.socket)
        if not ok then
            return nil, sock
        elseif not sock then
            return nil, err ~= "no body" and err or nil
        end
    end
    headers = headers or ngx.req.get_headers()
    local source, reader = source_of_socket(sock), nil
    local length = tonumber(headers["Content-Length"])
    if length then
        reader = body.of_length(source, length)
    elseif head.is_chunked(headers) then
        reader = body.of_chunks(source)
    end
    return reader and function(max_bytes)
        return reader(max_bytes or piece_bytes)
    end
end

--- Sends the request in hand on (deprecated there). Yields.
-- @phases access, content
function _M.proxy_request(client, piece_bytes)
    return client:request({
        method = ngx.req.get_method(),
        path = ngx.var.uri:gsub("%s", "%%20") .. ngx.var.is_args .. (ngx.var.query_string or ""),
        body = client:get_client_body_reader(piece_bytes),
        headers = ngx.req.get_headers(),
    })
end

--- Answers the request in hand with a response (deprecated there). Yields.
-- @phases access, content
function _M.proxy_response(_, response, piece_bytes)
    if not response then
        ngx.log(ngx.ERR, "no response provided")
        return
    end
    ngx.status = response.status
    for name, value in pairs(response.headers) do
        if not HOP_BY_HOP[name:lower()] then
            ngx.header[name] = value
        end
    end
    while true do
        local piece, err = response.body_reader(piece_bytes)
        local printed, print_err = true, nil
        if piece then
            printed, print_err = ngx.print(piece)
        end
        if err or not printed then
            ngx.log(ngx.ERR, err or print_err)
            return
        elseif not piece then
            return
        end
    end
end

return _M
