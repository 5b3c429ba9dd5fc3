"""The libraries events, timer and var in a stock nginx, from a module that has nothing else."""

import subprocess
from collections.abc import Iterator

import pytest

from nginx import Nginx, built
from sluice import ROOT
from wire import wait_until

MODULE = built("module-libraries")
WORKERS = 2

HTTP = """
    lua_shared_dict seen 1m;
    sluice_var_index $host $request_method;
    init_by_lua_block {
        package.loaded.bus = require("sluice.events").new()
        package.loaded.timers = require("sluice.timer").new()
    }
    init_worker_by_lua_block {
        local bus, timers = package.loaded.bus, package.loaded.timers
        assert(bus:init_worker())
        bus:subscribe("test", "greeting", function(data)
            ngx.shared.seen:set(data.word .. ngx.worker.id(), true)
        end)
        assert(timers:start())
        timers:at(0.001, function(premature, word)
            ngx.shared.seen:set(word .. ngx.worker.id(), not premature)
        end, "timer")
    }
    server {
        listen 127.0.0.1:@port@;
        location /publish { content_by_lua_block {
            assert(package.loaded.bus:publish("all", "test", "greeting", { word = "event" }))
        } }
        location /seen { content_by_lua_block {
            local keys = ngx.shared.seen:get_keys()
            table.sort(keys)
            ngx.say(table.concat(keys, " "))
        } }
        location /var { content_by_lua_block {
            local var, names = require("sluice.var"), {}
            for name in pairs(var.indexed()) do
                names[#names + 1] = name .. "=" .. var.handle(name):get()
            end
            table.sort(names)
            ngx.say(table.concat(names, " "))
        } }
        location /gateway { content_by_lua_block {
            for _, name in ipairs({ "header", "redact", "ffi.core" }) do
                ngx.say(select(2, pcall(require, "sluice." .. name)))
            end
        } }
    }
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Nginx]:
    """A stock nginx with that module, which is built if its sources have changed."""
    subprocess.run([ROOT / "scripts" / "build-module", "libraries"], check=True)
    with Nginx(HTTP, workers=WORKERS, module=MODULE) as running:
        yield running


@pytest.mark.usefixtures("server")
def test_the_module_has_nothing_of_the_gateway() -> None:
    listed = ["nm", "--dynamic", "--defined-only", "--format=just-symbols", str(MODULE)]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    http = {name for name in names if name.startswith("ngx_http_sluice_")}
    assert "ngx_http_sluice_var_module" in http
    assert not [name for name in http if not name.startswith("ngx_http_sluice_var_")]
    assert not [name for name in names if name.startswith(("sluice_core_", "sluice_images_"))]


def test_events_and_timers_reach_each_worker(server: Nginx) -> None:
    assert server.text("/publish") == ""
    wanted = " ".join(f"{what}{worker}" for what in ("event", "timer") for worker in range(WORKERS))
    wait_until(lambda: server.text("/seen").strip() == wanted, wanted)


def test_variables_are_read_by_number(server: Nginx) -> None:
    assert server.text("/var").strip() == "host=localhost request_method=GET"


def test_what_the_module_has_not_is_an_error_that_says_so(server: Nginx) -> None:
    assert server.text("/gateway").splitlines() == [
        f"nginx's Sluice module has only events, timer and var (module/lib), not {room}: put "
        f"'load_module {ROOT}/build/module/ngx_sluice_module.so;' in place of its line in "
        "nginx.conf"
        for room in ("core/image", "lib/redact", "core/image")
    ]
