"""Random walks through requests, which read and write variables."""

import json
import random
import time

from var_servers import Server

from sluice import SUPPORT
from wire import Wire

INDEX = (
    "default $made $made_of_uri $mapped $mapped_volatile $mapped_header $logged_map $arg_a $arg_b"
    " $arg_long_name $arg_none $binary_remote_addr $cookie_a $cookie_sid $cookie_none"
    " $document_root $http_none $http_x_a $http_x_thing $limit_rate $nginx_version $realpath_root"
    " $request_filename $sent_http_etag $sent_http_x_out $sent_http_none $sent_http_location"
    " $sent_http_cache_control $upstream_http_x_up $upstream_http_none $upstream_cookie_up $arg_"
    " $http_ $cookie_ $http_x_cookie_ $proxy_host $proxy_add_x_forwarded_for $proxy_protocol_addr"
)


HTTP = """
    @index@
    root /tmp;
    # Indexed by the configuration itself, so cached for the request on both servers.
    log_format odd "$logged_map $http_x_forwarded_for $cookie_a $arg_b $sent_http_x_out";
    map $arg_a $mapped { default "no $uri"; 1 one; 3 "three $args"; }
    map $uri $mapped_volatile { volatile; default "at $uri"; }
    map $http_x_thing $mapped_header { default $http_x_thing; "" none; }
    map $request_method $logged_map { default $request_method; GET get; }
    init_by_lua_block {
        package.path = package.path .. ";@tests@/?.lua"
        @init@
        require("var_walk").upstream = "unix:@run@/up.sock"
    }
    upstream walked { server 0.0.0.1; balancer_by_lua_block { require("var_walk").balancer() } }
    server {
        listen unix:@run@/up.sock;
        location / {
            add_header X-Up "of upstream"; add_header Set-Cookie "up=1; path=/";
            add_header ETag '"e"'; return 200 "from upstream\\n";
        }
    }
    server {
        listen 127.0.0.1:@port@;
        server_name walk.example;
        access_log @run@/logs/odd.log odd;
        underscores_in_headers on;
        keepalive_requests 1000000;
        set $made "";
        set $made_of_uri "made of $uri";
        location = /tell { access_log off; content_by_lua_block { require("var_walk").tell() } }
        location / {
            rewrite_by_lua_block { require("var_walk").rewrite() }
            access_by_lua_block { require("var_walk").access() }
            proxy_pass http://walked;
            header_filter_by_lua_block { require("var_walk").header_filter() }
            body_filter_by_lua_block { require("var_walk").body_filter() }
            log_by_lua_block { require("var_walk").log() }
        }
        location = /other {
            content_by_lua_block { require("var_walk").content() }
            header_filter_by_lua_block { require("var_walk").header_filter() }
            body_filter_by_lua_block { require("var_walk").body_filter() }
            log_by_lua_block { require("var_walk").log() }
        }
        location = /sub {
            content_by_lua_block { require("var_walk").sub() }
            header_filter_by_lua_block { require("var_walk").header_filter() }
        }
        location = /elsewhere {
            rewrite ^ /other?b=rewritten last;
        }
        location @named {
            proxy_pass http://walked;
            header_filter_by_lua_block { require("var_walk").header_filter() }
            log_by_lua_block { require("var_walk").log() }
        }
    }
"""


TESTS = str(SUPPORT)


TARGETS = ["/", "/?a=1", "/a/b?A=9&b=2", "/%41b?x&a=3&long_name=4", "/other?a=1", "/other", "/?"]


HEADERS = [
    ("X-Thing", "thing"),
    ("x-a", "small"),
    ("X-A", "big"),
    ("x_thing", "underscore"),
    ("Cookie", "a=b; sid=12345; z=1"),
    ("Cookie", "SID=upper; a = spaced"),
    ("Cookie", "x=1, a=comma;;sid =2, b"),
    ("X-Forwarded-For", "10.0.0.1"),
    ("X-Forwarded-For", "10.0.0.2, 10.0.0.3"),
    ("User-Agent", "walker"),
    ("Referer", "http://r/"),
    ("Via", "1.1 v"),
    ("Authorization", "Basic YTpi"),
    ("Accept", ""),
    ("Content-Type", "text/plain"),
]


def walk(server: Server, wire: Wire, request: dict) -> list[str]:
    """Sends a request, and tells what was read while it was served."""
    with Wire(server.proxy_port) as own:
        own.ask(**request)
    deadline = time.monotonic() + 20
    while True:
        told: list[str] = json.loads(wire.ask("/tell").body)
        # The log phase may come after the last byte; that of a subrequest is not the last.
        if "end" in told or time.monotonic() > deadline:
            return told


def some_request(chosen: random.Random) -> dict:
    """A request with a seed for its walk."""
    seed = chosen.randrange(1, 2**31 - 1)
    headers = [("Host", "Walk.Example"), ("X-Seed", str(seed)), ("Connection", "close")]
    headers += chosen.sample(HEADERS, chosen.randrange(8))
    body = chosen.choice([None, None, b"", b"body", b"b" * 3000])
    return {
        "target": chosen.choice(TARGETS),
        "method": "POST" if body is not None else chosen.choice(["GET", "HEAD"]),
        "headers": headers,
        "body": body,
    }
