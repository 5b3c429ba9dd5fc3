"""Log entries in C beside those in Lua (log_entry_oracle.lua), value by value, of random requests.

A plugin makes both in the log phase and compares them there.
"""

import random

import pytest
from soaks import soak

from sluice import ROOT, Gateway, Start, proxying
from upstream import DeadPort, Exchange, Upstream
from wire import ClosedEarly, request_bytes, wait_until

ROUNDS = soak(250, 2500)

COMPARES = (
    """
local cjson = require("cjson")
local oracle = dofile("@root@/test/nginx/support/log_entry_oracle.lua")
local pdk = require("gateway.pdk")

local function same(a, b, path)
    if type(a) ~= "table" or type(b) ~= "table" then
        return a == b, path
    end
    for key in pairs(a) do
        local ok, where = same(a[key], b[key], path .. "." .. tostring(key))
        if not ok then return false, where end
    end
    for key in pairs(b) do
        if a[key] == nil then return false, path .. "." .. tostring(key) end
    end
    return true
end

local count = 0

return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "compares", fields = { { config = { type = "record", fields = {} } } } },
    log = function()
        local ours = pdk.log_entry()
        local theirs = oracle.encode({
            route = pdk.route(), service = pdk.service(),
            consumer = pdk.consumer(), credential = pdk.credential(),
        }, cjson.decode(ours))
        local ok, where = same(cjson.decode(ours), cjson.decode(theirs), "")
        if not ok then
            ngx.log(ngx.ERR, "DIFFERENT at ", where, ": ", ours, " and ", theirs)
        end
        count = count + 1
        ngx.log(ngx.NOTICE, "compared ", count, " at ", ngx.var.connection_requests)
    end,
}
"""
).replace("@root@", str(ROOT))

NAMES = ["X-A", "x-a", "X_B", "Referer", "Location", "Authorization", "Cookie", "Accept", "apikey"]
NAMES += ["User-Agent", "X-Kong-Response-Latency", "Connection", "Proxy-Authorization", "Server"]

PIECES = [
    "a",
    "/",
    "?",
    "&",
    "=",
    ";",
    "#",
    "@",
    "%",
    "%41",
    "%2",
    "%zz",
    "+",
    "//",
    "http://u:p@h/",
]
PIECES += ["apikey=secret", "key-auth/", "/key-auths/k", "/consumers/c/key-auth/k", '"', "\\", "<"]
PIECES += ["a=1", "a=2", "a", "&&", "&=x", "%3d", "%00", "%ff", "%c3%a4"]

RAW = ["\t", "\x7f", "\xe4", "\xff", "\xc3\xa4", " "]


def text(chosen: random.Random, pieces: list[str], most: int) -> str:
    return "".join(chosen.choices(pieces, k=chosen.randint(0, most)))


def some_headers(chosen: random.Random) -> list[tuple[str, str]]:
    count = chosen.choice([0, 1, 2, 5, 20, 120])
    pieces = PIECES + RAW if chosen.random() < 0.3 else PIECES
    return [(chosen.choice(NAMES), text(chosen, pieces, 6).strip()) for _ in range(count)]


def some_request(chosen: random.Random) -> bytes:
    """A request that nginx may or may not take."""
    query = [piece for piece in PIECES if piece not in "#"]
    target = chosen.choice(["/", "/x", "/dead", "/none", "/x/" + "y" * 50])
    target += text(chosen, ["a", "%41", "/", "%2f", "+", "=", "&", ";", "@"], 3)
    if chosen.random() < 0.7:
        many = chosen.random() < 0.1
        target += "?" + ("k=v&" * 150 if many else text(chosen, query, 12))
    method = chosen.choice(["GET", "POST", "HEAD", "PATCH", "X-OWN"])
    headers = [(n, v) for n, v in some_headers(chosen) if n not in ("Connection", "Server")]
    if chosen.random() < 0.3:
        headers.append(("apikey", "k"))
    body = b"x" * chosen.choice([0, 10, 3000]) if method in ("POST", "PATCH") else None
    data = request_bytes(target, method, headers, body)
    if chosen.random() < 0.05:
        at = chosen.randrange(len(data) // 2)
        data = data[:at] + chosen.choice([b"\x00", b"\r\n", b" ", b"\xff"]) + data[at + 1 :]
    return data


@pytest.mark.parametrize("seed", [1, 2])
def test_an_entry_is_that_of_the_lua(gateway: Start, upstream: Upstream, seed: int) -> None:
    chosen = random.Random(seed)

    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        most = chosen.choice([30, 200])
        headers = [(n, v) for n, v in some_headers(chosen) if n.lower() != "connection"][:most]
        body = b"y" * chosen.choice([0, 5, 5000])
        status = chosen.choice([200, 404, 500])
        exchange.reply(status, headers, body, chunked=chosen.random() < 0.5)

    upstream.handler = answer
    with DeadPort() as dead:
        config = proxying(upstream, paths=["/x"], strip_path=chosen.random() < 0.5)
        targets = [{"target": address} for address in (dead.address, upstream.address)]
        config["upstreams"] = [{"name": "two", "targets": targets}]
        config["services"] += [
            {"name": "one", "host": "two", "path": "/base", "routes": [{"paths": ["/x/y"]}]},
            {"name": "dead", "url": dead.url, "retries": 2, "routes": [{"paths": ["/dead"]}]},
        ]
        config["plugins"] = [
            {"name": "compares"},
            {"name": "key-auth", "route": "dead-route"},
        ]
        config["services"][-1]["routes"][0]["name"] = "dead-route"
        config["consumers"] = [
            {"username": "\u00e4nn", "custom_id": "7", "keyauth_credentials": [{"key": "k"}]}
        ]
        settings = {"client_max_body_size": "2k", "large_client_header_buffers": "4 16k"}
        running = gateway(config, plugins={"compares": COMPARES}, **settings)
        running.expect_log(r"\[(error|warn)\](?!.*DIFFERENT)", range(100000))
        before = running.workers()
        for _ in range(ROUNDS):
            with running.wire() as wire:
                data = some_request(chosen)
                try:
                    wire.send(data)
                    wire.sock.settimeout(1)
                    wire.read_reply("HEAD" if data.startswith(b"HEAD") else "GET")
                except (ClosedEarly, ConnectionError, TimeoutError, ValueError):
                    continue
        wait_until(lambda: compared(running) >= ROUNDS // 2, "the entries to be compared")
        assert "DIFFERENT" not in running.error_log()
        assert running.workers() == before, "a worker has died"


def compared(running: Gateway) -> int:
    """How many entries were."""
    return running.error_log().count("compared ")
