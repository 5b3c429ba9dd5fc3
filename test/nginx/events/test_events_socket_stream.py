"""The socket transport in the stream subsystem, where its Lua module exists."""

import socket

import pytest

from nginx import MODULES, Nginx
from wire import DEADLINE, wait_until

STREAM_LUA = MODULES / "ngx_stream_lua_module.so"

pytestmark = pytest.mark.skipif(
    not STREAM_LUA.exists(),
    reason=f"no {STREAM_LUA.name}: Debian has none. The same broker serves raw connections in "
    "test_events_socket_frames.py.",
)

STREAM = """
stream {
    lua_package_path "@lua@;;";
    lua_socket_log_errors off;
    init_by_lua_block {
        package.loaded.probe = { heard = {}, ev = assert(require("sluice.events").new({
            transport = "socket", listening = "unix:@socket@",
        })) }
    }
    init_worker_by_lua_block {
        local probe = require("probe")
        probe.ev:subscribe("*", "*", function(data)
            table.insert(probe.heard, data)
        end)
        assert(probe.ev:init_worker())
    }
    server {
        listen unix:@socket@;
        content_by_lua_block { require("probe").ev:run() }
    }
    server {
        listen 127.0.0.1:@port@ reuseport;
        content_by_lua_block {
            local probe, sock = require("probe"), ngx.req.socket()
            local text = sock:receive("*l")
            if text ~= "" then
                assert(probe.ev:publish("all", "test", "event", text))
            end
            ngx.say(ngx.worker.id(), " ", table.concat(probe.heard, ","))
        }
    }
}
"""


def ask(nginx: Nginx, text: str) -> tuple[str, str]:
    """Publishes a text, or nothing; a worker's id, and what it heard."""
    with socket.create_connection(("127.0.0.1", nginx.proxy_port), DEADLINE) as connection:
        connection.sendall(text.encode() + b"\n")
        wid, _, heard = connection.makefile().read().strip().partition(" ")
        return wid, heard


def test_every_worker_hears_what_is_published() -> None:
    nginx = Nginx("")
    main, _, _ = (nginx.prefix / "nginx.conf").read_text().partition("http {")
    nginx.write(f"load_module {STREAM_LUA};\n" + main + nginx.filled(STREAM))
    with nginx:
        ask(nginx, "one")
        ask(nginx, "two")
        found: dict[str, str] = {}

        def all_heard() -> bool:
            wid, heard = ask(nginx, "")
            found[wid] = heard
            return len(found) == 2 and set(found.values()) == {"one,two"}

        wait_until(all_heard, "both workers to hear both events in one order")
