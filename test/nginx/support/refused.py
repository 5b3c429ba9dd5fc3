"""Requests that nginx refuses before it has read them."""

import random
from collections.abc import Iterator

from var_servers import Server

from sluice import ROOT
from wire import Wire

INDEX = (
    "default $sluice_ctx $sluice_host $sluice_prefix $sluice_proxy_ms $sluice_request_id "
    "$sluice_request_path $sluice_response_via $sluice_upstream_ms $sluice_uri "
    "$sluice_via $args $host $http_host $http_via $http_x_a $arg_a $cookie_a $request_uri $status "
    "$sent_http_x_a $upstream_addr $upstream_status $request_body $uri"
)


PHASES = ["rewrite", "access", "content", "header_filter", "body_filter", "log"]


HTTP = (
    """
    @index@
    sluice_via "1.1 here";
    init_by_lua_block {
        package.path = package.path .. ";@root@/?.lua"
        local header = require("sluice.header")
        @init@
        local NAMES = {}
        for name in ([[INDEX]]):gmatch("%$([%w_]+)") do
            NAMES[#NAMES + 1] = name
        end
        local HEADERS = { "X-A", "Via", "Cookie", "Host", "Connection", "RateLimit-Limit" }
        local VALUES = { "v", "", 7, 1.5, ("x"):rep(300), { "a", "b" } }

        -- Each function with each kind of argument; what it throws is its right in that phase.
        function walk(phase)
            local var = require("sluice.var")
            local matched = require("gateway.pdk.matched")
            local identity = require("gateway.pdk.identity")
            local done = 0
            local function call(...)
                pcall(...)
                done = done + 1
            end
            package.loaded.walked = package.loaded.walked or {}
            package.loaded.walked[phase] = true
            for _, name in ipairs(HEADERS) do
                local handle = header.new(name)
                call(handle.get_request, handle)
                call(handle.clear_request, handle)
                for _, value in ipairs(VALUES) do
                    call(handle.set_response, handle, value)
                    call(handle.set_request, handle, value)
                    call(handle.get_request, handle)
                end
                call(handle.set_response, handle, nil)
                call(handle.set_request, handle, nil)
            end
            for _, name in ipairs(NAMES) do
                for _, way in pairs(package.loaded.ways) do
                    call(way.get, name)
                    call(way.set, name, "x")
                    call(way.get, name)
                end
            end
            local all = var.bulk(NAMES)
            call(all.get, all)
            call(matched.path)
            call(matched.entity, "route")
            call(matched.entity, "service")
            call(identity.get)
            call(identity.set, { id = "a", username = "b" }, { id = "c" })
            call(identity.get)
            return done
        end
    }
    server {
        listen 127.0.0.1:@port@;
        large_client_header_buffers 2 1k;
        client_header_buffer_size 256;
        client_max_body_size 10;
        client_header_timeout 100ms;
        keepalive_timeout 0;
        error_page 400 404 405 408 411 412 413 414 417 494 500 501 502 503 504 505 /page;
        location = /page {
            PHASES
            content_by_lua_block { ngx.say("walked ", walk("content")) }
        }
        location / { return 204; }
        location = /again { content_by_lua_block { ngx.exec("/page") } }
        location = /walked {
            content_by_lua_block {
                for phase in pairs(package.loaded.walked or {}) do ngx.say(phase) end
            }
        }
    }
""".replace(
        "PHASES",
        "\n".join(
            f'{phase}_by_lua_block {{ walk("{phase}") }}' for phase in PHASES if phase != "content"
        ),
    )
    .replace("INDEX", INDEX)
    .replace("@root@", str(ROOT))
)


HOST = b"Host: a\r\n"


REFUSED = {
    "no request line": b"\x00\x01\x02\r\n\r\n",
    "no method": b"/ HTTP/1.1\r\n" + HOST + b"\r\n",
    "no version": b"GET / HTTX/1.1\r\n" + HOST + b"\r\n",
    "unknown version": b"GET / HTTP/7.7\r\n" + HOST + b"\r\n",
    "version of two digits": b"GET / HTTP/1.100000\r\n" + HOST + b"\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n",
    "no path": b"GET x HTTP/1.1\r\n" + HOST + b"\r\n",
    "above the root": b"GET /../.. HTTP/1.1\r\n" + HOST + b"\r\n",
    "null in the path": b"GET /%00 HTTP/1.1\r\n" + HOST + b"\r\n",
    "long uri": b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    "long method": b"G" * 3000 + b" / HTTP/1.1\r\n" + HOST + b"\r\n",
    "long http/0.9": b"GET /" + b"a" * 3000 + b"\r\n",
    "http/0.9": b"GET /%00\r\n",
    "long header": b"GET / HTTP/1.1\r\n" + HOST + b"X-A: " + b"a" * 3000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + HOST + b"X-A: aaaaaaaaaaaaaaaa\r\n" * 200 + b"\r\n",
    "bad header": b"GET / HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "bad host": b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "bad length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n\r\n",
    "large body": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 999\r\n\r\n",
    "unknown encoding": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: x\r\n\r\n",
    "trace": b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n",
    # Not refused, but without what others have.
    "right http/0.9": b"GET /page\r\n",
    "right http/0.9, again": b"GET /again\r\n",
    "http/1.0 without host": b"GET /page HTTP/1.0\r\n\r\n",
    "http/1.0 without host, again": b"GET /again HTTP/1.0\r\n\r\n",
    "time out in the header": b"GET / HTTP/1.1\r\n" + HOST,
    "time out in the line": b"GET /",
}


def expect(running: Server) -> None:
    """What Lua says of calls that are none of a phase, or of a request without a header."""
    running.expect_log(r"\[error\]", range(100000))
    running.expect_log("client intended to send too large body", range(100000))


def answer(running: Server, data: bytes) -> bytes:
    """All that comes back."""
    with Wire(running.proxy_port) as wire:
        try:
            wire.send(data)
            return wire.read_to_end()
        except (ConnectionResetError, BrokenPipeError):
            return b""


def mutations(chosen: random.Random, count: int) -> Iterator[bytes]:
    """Refused requests with a byte changed, doubled or lost, or cut off."""
    for _ in range(count):
        data = bytearray(chosen.choice(list(REFUSED.values())))
        at = chosen.randrange(min(len(data), 60))
        how = chosen.randrange(4)
        if how == 0:
            data[at] = chosen.choice(b"\x00 \t\r\n:/%?#H1\x80\xff")
        elif how == 1:
            data.insert(at, data[at])
        elif how == 2:
            del data[at]
        else:
            del data[at + 1 :]
        yield bytes(data) + b"\r\n\r\n"
