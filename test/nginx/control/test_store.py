"""The store in nginx's threads: each has a Lua VM of its own, the store is one."""

import json
import os
import signal

from nginx import LIB, Nginx
from sluice import ROOT
from wire import wait_until

HTTP = """
    init_worker_by_lua_block {
        local entities = require("gateway.entities")
        local layout = require("gateway.store.layout")
        local schemas = {}
        for i, kind in ipairs(entities.kinds) do
            schemas[i] = entities.get(kind)
        end
        LAYOUTS = layout.derive(schemas)
        STORE = {}

        function store_call(...)
            local ok, first, second =
                ngx.run_worker_thread("sluice_store", "gateway.store.thread", ...)
            if not ok then
                error(first)
            end
            return first, second
        end
    }
    server {
        listen 127.0.0.1:@port@;
        location / { return 200; }
        location /open {
            content_by_lua_block {
                local err
                local opts = { layouts = LAYOUTS }
                STORE.handle, err = store_call("open", "@run@/store/store.db", opts)
                ngx.say(require("cjson").encode(err or { token = STORE.handle.token }))
            }
        }
        location /race {
            content_by_lua_block {
                local text = require("gateway.store.entity_text")
                local cjson = require("cjson")
                local function write(i)
                    local entity = { id = "s" .. i, name = "one" }
                    local change = { kind = "services", put = text.encode(entity) }
                    return { store_call("call", STORE.handle, "transaction", { change }) }
                end
                local threads, answers = {}, {}
                for i = 1, 40 do
                    threads[i] = ngx.thread.spawn(write, i)
                end
                for i = 1, 40 do
                    local _, answer = ngx.thread.wait(threads[i])
                    answers[i] = answer[1] and "made" or answer[2].err
                end
                local rows = store_call("call", STORE.handle, "list", "services")
                ngx.say(cjson.encode({ answers = answers, rows = #rows }))
            }
        }
        location /close {
            content_by_lua_block {
                ngx.say(tostring(store_call("close", STORE.handle)))
            }
        }
    }
"""


class WithStore(Nginx):
    """An nginx with the gateway's Lua and threads for the store."""

    lua = (ROOT, LIB)

    def __init__(self) -> None:
        super().__init__(HTTP, workers=1, main="thread_pool sluice_store threads=8;")


def test_threads_share_a_store() -> None:
    """Whichever VM a call runs in, it is the same store; of many with one key, one is made."""
    with WithStore() as running:
        for _ in range(2):
            assert "token" in json.loads(running.text("/open"))
            found = json.loads(running.text("/race"))
            assert found["rows"] == 1
            made = found["answers"].count("made")
            assert found["answers"].count("unique violation") + made == 40
            assert made <= 1
            assert running.text("/close").strip() == "true"


def test_one_process_writes() -> None:
    """A second opening is refused; a killed worker leaves the store to the next."""
    with WithStore() as running:
        assert "token" in json.loads(running.text("/open"))
        refused = json.loads(running.text("/open"))
        assert refused["err"] == "locked"
        assert str(running.prefix) in refused["message"]
        running.expect_log("exited on signal 9")
        worker = running.workers()[0]
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: running.workers() not in ([], [worker]), "the next worker")
        assert "token" in json.loads(running.text("/open"))
