"""What changes while a request is on its way through its plugins, or while memory lacks."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from changes import document, post

import guard
from sluice import Start, preloaded, proxying, sanitizers
from upstream import Upstream
from wire import request_bytes, wait_until


@pytest.fixture
def folder() -> Iterator[Path]:
    """In which workers may write."""
    made = guard.folder("sluice-chain-")
    made.chmod(0o777)
    yield made
    guard.remove(made)


PLUGIN = """
return {
    VERSION = "1", PRIORITY = %(priority)d,
    schema = { name = "%(name)s", fields = { { config = { type = "record", fields = {} } } } },
    %(phases)s
}
"""

# Before routing: requests that name a file say there that they wait, and do so until it is gone.
WAITS = """
    rewrite = function()
        local path = ngx.var.http_x_wait
        if path then
            local file = assert(io.open(path, "a"))
            file:write("x")
            file:close()
        end
        while path and io.open(path) do
            ngx.sleep(0.01)
        end
    end,
"""

# How many tables of requests Lua has.
COUNTS = """
    seen = setmetatable({}, { __mode = "k" }),
    rewrite = function(self)
        self.seen[ngx.ctx] = true
    end,
    access = function(self)
        collectgarbage()
        local count = 0
        for _ in pairs(self.seen) do
            count = count + 1
        end
        ngx.header["X-Seen"] = count
    end,
"""


def test_the_last_plugin_with_a_late_phase_goes(
    folder: Path, gateway: Start, upstream: Upstream
) -> None:
    """ngx.ctx was kept for it, and must not be kept for ever."""
    phases = {"counts": COUNTS, "waits": WAITS, "late": "log = function() end,"}
    sources = {
        name: PLUGIN % {"name": name, "priority": priority, "phases": phases[name]}
        for name, priority in (("counts", 3), ("waits", 2), ("late", 1))
    }
    config: dict[str, Any] = proxying(upstream)
    config["plugins"] = [{"name": name} for name in sources]
    running = gateway(config, plugins=sources)
    wait = folder / "wait"
    wires = [running.wire() for _ in range(5)]
    for wire in wires:
        wire.send(request_bytes("/", headers=[("X-Wait", str(wait))]))
    wait_until(lambda: wait.exists() and len(wait.read_text()) == 5, "the requests to wait")
    config["plugins"].pop()
    assert post(running, document(config)).is_success
    wait.unlink()
    for wire in wires:
        assert wire.read_reply().status == 200
        wire.close()
    assert running.ask("/").headers.get("x-seen") == "1"


SCARCE = """
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
    if (size == %(size)d && access("%(path)s", F_OK) == 0) {
        errno = ENOMEM;
        return NULL;
    }

    return __libc_malloc(size);
}
"""


@pytest.mark.skipif(bool(sanitizers()), reason="a sanitizer has a malloc() of its own")
def test_a_configuration_that_lacked_memory_is_compiled_again(
    folder: Path, gateway: Start, upstream: Upstream
) -> None:
    realm = "r" * 20_000
    # What the plugin copies of it.
    size = len(f'Key realm="{realm}"')
    library, scarce = folder / "scarce.so", folder / "scarce"
    subprocess.run(
        ["gcc", "-x", "c", "-shared", "-fPIC", "-o", str(library), "-"],
        input=SCARCE % {"size": size, "path": scarce},
        text=True,
        check=True,
    )
    config = proxying(upstream) | {"plugins": [{"name": "key-auth", "config": {"realm": realm}}]}
    running = gateway(config, env={"LD_PRELOAD": preloaded(library)})
    running.expect_log(rf"malloc\({size}\) failed", 1)
    scarce.touch()
    assert running.ask("/").status == 503
    scarce.unlink()
    assert running.ask("/").status == 401
