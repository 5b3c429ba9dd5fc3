"""sluice upgrade: another nginx takes over under load, or the one that runs goes on."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from admin_client import Client as Admin
from changes import document, post, stopped, versions
from reload_client import Client
from traffic import Traffic
from tunnels import echo, opened
from versions import VERSION, versioned

from instance import Instance, copy_checkout
from sluice import COMMAND, NGINX, Gateway, Start, alive
from upstream import Upstream
from wire import wait_until

UNDONE = "sluice: upgrade undone: the running gateway continues to serve"
KEPT = "sluice: upgrade refused: the running gateway is kept"


class Binary:
    """The nginx of a gateway: the machine's, until another is put into its place."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "nginx"
        self.restore()

    def restore(self) -> None:
        """The machine's own again."""
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(NGINX)

    def replace(self, script: str) -> None:
        """What runs in its place, save for a look at the version and the configuration."""
        self.path.unlink()
        self.path.write_text(
            "#!/bin/bash\n"
            f'real() {{ exec -a "$0" {NGINX} "$@"; }}\n'
            '[[ " $* " == *" -t "* || $1 == -v ]] && real "$@"\n' + script
        )
        self.path.chmod(0o755)


@pytest.fixture
def binary(tmp_path_factory: pytest.TempPathFactory) -> Binary:
    return Binary(tmp_path_factory.mktemp("nginx"))


def upgrade(running: Gateway, *arguments: str) -> subprocess.CompletedProcess[str]:
    return running.command("upgrade", *(arguments or ("--watch", "0.3")))


def succeed(running: Gateway, warns: str = "") -> int:
    """The pid of the new master; `warns`: the end of what is said of the file."""
    old = running.master()
    done = upgrade(running)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(warns) if warns else done.stderr == ""
    assert done.stdout.startswith("upgraded to sluice ")
    assert done.stdout.endswith(f"(pid {running.master()}); pid {old} finishes its requests\n")
    assert running.master() != old
    return running.master()


def is_undone(running: Gateway, old: int, reason: str, *arguments: str) -> str:
    """Upgrades in vain; what was said. The old nginx has the instance to itself again."""
    done = upgrade(running, *arguments)
    assert done.returncode == 1, done.stdout
    assert reason in done.stderr
    assert done.stderr.splitlines()[-1] == UNDONE
    assert running.master() == old
    assert not (running.settings["prefix"] / "run/nginx.pid.oldbin").exists()
    return done.stderr


@contextlib.contextmanager
def kept_alive(running: Gateway, upstream: Upstream, count: int) -> Iterator[list[Client]]:
    """Clients that send one request after the other on kept connections."""
    clients = [Client(running, upstream, f"client{n}", b"") for n in range(count)]
    for client in clients:
        client.start()
    try:
        wait_until(lambda: all(c.tally.answered > 5 for c in clients), "traffic")
        yield clients
    finally:
        for client in clients:
            client.done.set()
        for client in clients:
            client.join(10)


def gone(pid: int) -> bool:
    return not alive(pid)


@pytest.mark.parametrize("layout", ["the same layout", "another layout"])
def test_no_request_fails(gateway: Start, upstream: Upstream, binary: Binary, layout: str) -> None:
    """Of another layout is what does not find the memory of the nginx before it."""
    running = gateway(versioned(upstream, 1), plugins=VERSION, workers=2, nginx_binary=binary.path)
    if layout == "another layout":
        binary.replace('unset SLUICE_IMAGES; real "$@"\n')
    with Traffic(running) as traffic, kept_alive(running, upstream, 3) as clients:
        for number in range(2, 5):
            old = running.master()
            # What the one before has posted stays.
            succeed(running, "loads the file\n" if number > 2 else "")
            assert versions(running) == {str(number - 1)}
            assert post(running, document(versioned(upstream, number))).status_code == 201
            # Until then it may let in who connects, and it serves what it had.
            wait_until(lambda old=old: gone(old), "the old nginx to leave")
            assert versions(running) == {str(number)}
            before = traffic.answered
            wait_until(lambda before=before: traffic.answered > before + 50, "more requests")
        # The command's own socket is the new one's.
        assert running.command("get", "routes").returncode == 0
    assert traffic.failed == []
    assert [line for client in clients for line in client.tally.failed] == []
    assert sum(client.tally.answered for client in clients) > 100


def test_the_store_goes_on(gateway: Start) -> None:
    """Ten answered writes before, during and after it are there."""
    running = gateway(None, workers=2)
    admin, made, done = Admin(running), [], threading.Event()

    def write() -> None:
        while not done.is_set():
            name = f"c{len(made)}"
            reply = admin.ask("PUT", f"/consumers/{name}", {})
            if reply.status == 200:
                made.append(name)
            elif reply.status != 503:
                made.append(f"{name}: {reply.status}")
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(2):
            before = len(made)
            old = running.master()
            wait_until(lambda before=before: len(made) > before + 10, "writes")
            succeed(running)
            wait_until(lambda old=old: gone(old), "the old nginx to leave")
        before = len(made)
        wait_until(lambda: len(made) > before + 10, "writes")
    finally:
        done.set()
        thread.join(10)
    for name in made:
        assert admin.ask("GET", f"/consumers/{name}").status == 200, name


def test_a_tunnel_lives_on(gateway: Start, upstream: Upstream) -> None:
    """shutdown_timeout 0: as long as it takes. Meanwhile there is no other upgrade."""
    running = gateway(versioned(upstream, 1), plugins=VERSION)
    upstream.handler = echo
    old = running.master()
    with opened(running) as wire:
        succeed(running)
        wire.send(b"hello")
        assert wire.read_exactly(5) == b"hello"
        line = f"nginx (pid {old}) is finishing requests: 1 worker"
        wait_until(lambda: line in running.command("status").stdout, "the tunnel's worker alone")
        done = upgrade(running)
        assert done.returncode == 1
        assert f"(pid {old}) is still finishing requests" in done.stderr
        assert f"`kill -TERM {old}`" in done.stderr
        assert done.stderr.splitlines()[-1] == KEPT
        wire.send(b"again")
        assert wire.read_exactly(5) == b"again"
    wait_until(lambda: gone(old), "the old nginx to leave")
    succeed(running)


def test_a_tunnel_lives_as_long_as_the_setting_says(gateway: Start, upstream: Upstream) -> None:
    running = gateway(versioned(upstream, 1), plugins=VERSION, shutdown_timeout="2s")
    running.expect_log("open socket .* left in connection|: aborting$", range(5))
    upstream.handler = echo
    old = running.master()
    with opened(running) as wire:
        succeed(running)
        wire.send(b"hello")
        assert wire.read_exactly(5) == b"hello"
        assert wire.ended()
    wait_until(lambda: gone(old), "the old nginx to leave")


def test_the_end_of_both(gateway: Start, upstream: Upstream) -> None:
    """What ends the gateway ends the nginx before it, too."""
    running = gateway(versioned(upstream, 1), plugins=VERSION)
    running.expect_log("open socket .* left in connection|: aborting$", range(5))
    upstream.handler = echo
    old = running.master()
    with opened(running):
        succeed(running)
        assert alive(old)
        running.stop("stop")
    assert gone(old)


def test_a_new_nginx_that_does_not_begin(
    gateway: Start, upstream: Upstream, binary: Binary
) -> None:
    running = gateway(versioned(upstream, 1), plugins=VERSION, workers=2, nginx_binary=binary.path)
    old, workers = running.master(), running.workers()
    conf = (running.settings["prefix"] / "nginx.conf").read_text()
    running.settings["keepalive_requests"] = 77
    with Traffic(running) as traffic:
        running.expect_log("new binary process .* exited with code 1")
        binary.replace("exit 1\n")
        is_undone(running, old, "the new nginx did not take over: ")
        running.expect_log("new binary process .* exited with code 2")
        binary.replace("sleep 0.3; exit 2\n")
        is_undone(running, old, "the new nginx exited before it served")
        running.expect_log("new binary process .* exited on signal 9")
        binary.replace("while :; do sleep 0.1; done\n")
        is_undone(running, old, "did not start within 1 seconds", "--timeout", "1")
        binary.path.unlink()
        done = upgrade(running)
        assert (done.returncode, done.stderr.splitlines()[-1]) == (1, KEPT)
        assert running.workers() == workers
        assert (running.settings["prefix"] / "nginx.conf").read_text() == conf
        running.settings["keepalive_requests"] = 10000
        binary.restore()
        succeed(running)
    assert traffic.failed == []


def test_what_cannot_be_put_back_is_named(
    gateway: Start, upstream: Upstream, binary: Binary
) -> None:
    running = gateway(versioned(upstream, 1), plugins=VERSION, nginx_binary=binary.path)
    running.expect_log("new binary process .* exited with code 1")
    conf = running.settings["prefix"] / "nginx.conf"
    running.settings["keepalive_requests"] = 77
    binary.replace(f"mkdir -p {conf}.new/in-the-way; exit 1\n")
    done = upgrade(running)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, UNDONE)
    assert f"sluice: cannot put back {conf}: " in done.stderr
    assert "settings.json" not in done.stderr
    assert '"keepalive_requests":10000' in conf.with_name("settings.json").read_text()


DIES = """
local signal = require("posix.signal")
return {
    VERSION = "0.1.0", PRIORITY = 1,
    schema = { name = "version", fields = {
        { config = { type = "record", fields = { { text = { type = "string" } } } } },
    } },
    init_worker = function()
        ngx.timer.at(%s, function()
            signal.kill(ngx.worker.pid(), signal.SIGKILL)
        end)
    end,
    access = function(self, conf)
        ngx.header["X-Version"] = "dies"
    end,
}
"""


@pytest.mark.parametrize("seconds", [0, 1])
def test_new_workers_that_die(gateway: Start, upstream: Upstream, seconds: float) -> None:
    """At once, or as they serve: the old ones serve on. A request is lost only with its worker."""
    running = gateway(versioned(upstream, 1), plugins=VERSION, workers=2)
    running.expect_log("exited on signal 9", range(1, 1000))
    running.expect_log("3 control workers died within a minute", range(10))
    old, workers = running.master(), running.workers()
    plugin = running.prefix / "lua" / "plugins" / "version" / "handler.lua"
    source = plugin.read_text()
    plugin.write_text(DIES % seconds)
    with Traffic(running, 2) as traffic:
        # As often as makes a control worker that dies again and again stay stopped.
        for _ in range(3):
            is_undone(running, old, "a worker of the new nginx", "--watch", "20")
        assert running.workers() == workers
        assert versions(running) == {"1"}
        failed = len(traffic.failed)
        assert failed <= 2 * running.error_log().count("exited on signal 9")
        plugin.write_text(source)
        succeed(running)
    assert len(traffic.failed) == failed


UNIQUE = """
return {
    VERSION = "0.1.%s", PRIORITY = 1,
    schema = { name = "version", fields = {
        { config = { type = "record", fields = { { text = { type = "string" } } } } },
    } },
    daos = { {
        name = "things", primary_key = { "id" }, endpoint_key = "name",
        fields = {
            { id = { type = "string", uuid = true, auto = true } },
            { name = { type = "string", unique = true } },
            { code = { type = "string", unique = %s } },
        },
    } },
}
"""


def test_a_new_control_worker_that_cannot_take_the_store(
    gateway: Start, upstream: Upstream
) -> None:
    """The old nginx's takes it back, and what was answered is there."""
    running = gateway(None, plugins={"version": UNIQUE % (0, "false")}, workers=2)
    running.expect_log("the store cannot be opened: .* cannot be made unique", range(1, 9))
    admin = Admin(running)
    service = {"name": "s", "url": upstream.url}
    admin.must(200, "PUT", "/services/s", service)
    admin.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
    for name in ("a", "b"):
        admin.must(200, "PUT", f"/things/{name}", {"code": "same"})
    wait_until(lambda: running.ask("/").status == 200, "the route")
    plugin = running.prefix / "lua" / "plugins" / "version" / "handler.lua"
    plugin.write_text(UNIQUE % (1, "true"))
    old, workers = running.master(), running.workers()
    with Traffic(running) as traffic:
        is_undone(running, old, "")
        assert running.workers() == workers
        wait_until(lambda: admin.ask("PUT", "/consumers/c", {}).status == 200, "a writer")
        assert admin.must(200, "GET", "/things/b")["code"] == "same"
        admin.must(204, "DELETE", "/things/b")
        succeed(running)
        admin.must(200, "PUT", "/things/c", {"code": "other"})
    assert traffic.failed == []


def test_entities_of_a_newer_version(gateway: Start) -> None:
    """One that came back shows what it knows of them, and changes that."""
    running = gateway(None)
    admin = Admin(running)
    admin.must(200, "PUT", "/services/s", {"url": "http://127.0.0.1:9"})
    admin.must(201, "POST", "/plugins", {"name": "key-auth", "instance_name": "p"})
    running.stop()
    with contextlib.closing(sqlite3.connect(running.settings["prefix"] / "store/store.db")) as db:
        for kind, field in (("services", '"retries":'), ("plugins", '"key_names":')):
            newer = """'"newer":{"x":[1]},'"""
            db.execute(f"UPDATE e_{kind} SET text = replace(text, '{field}', {newer} || '{field}')")
        db.commit()
    (running.settings["prefix"] / "store/store.db.witness").unlink()
    running.start()
    for path, change in (
        ("/services/s", {"retries": 1}),
        ("/plugins/p", {"config": {"hide_credentials": True}}),
    ):
        assert "newer" not in admin.ask("GET", path).text
        assert "newer" not in admin.ask("PATCH", path, change).text
        assert admin.ask("PATCH", path, {"newer": 1}).status == 400
    assert admin.must(200, "GET", "/services/s")["retries"] == 1
    assert admin.must(200, "GET", "/plugins/p")["config"]["hide_credentials"] is True


def test_one_that_was_interrupted(gateway: Start, upstream: Upstream) -> None:
    """Both serve; either may be ended."""
    running = gateway(versioned(upstream, 1), plugins=VERSION, workers=2)
    old = running.master()
    with Traffic(running) as traffic:
        command = subprocess.Popen(
            [str(COMMAND), "upgrade", "--watch", "600"], env=running.environment()
        )
        wait_until(running.settings["prefix"].joinpath("run/nginx.pid.oldbin").exists, "an upgrade")
        running.wait_for_master()
        wait_until(lambda: len(running.workers()) == 2, "its workers")
        command.send_signal(signal.SIGKILL)
        command.wait()
        assert f"`kill -QUIT {old}`" in upgrade(running).stderr
        assert post(running, document(versioned(upstream, 2))).status_code == 201
        os.kill(old, signal.SIGQUIT)
        wait_until(lambda: gone(old), "the old nginx to leave")
        wait_until(lambda: versions(running) == {"2"}, "the change")
        assert post(running, document(versioned(upstream, 3))).status_code == 201
    assert traffic.failed == []


def test_refusals(gateway: Start, upstream: Upstream) -> None:
    running = gateway(versioned(upstream, 1), plugins=VERSION)
    old = running.master()
    running.write_config("services: nonsense")
    assert upgrade(running).stderr.splitlines()[-1] == KEPT
    running.write_config(versioned(upstream, 1))
    with stopped(old):
        done = upgrade(running)
        assert (done.returncode, done.stderr.splitlines()) == (
            1,
            [f"sluice: its master (pid {old}) is stopped", KEPT],
        )
    assert upgrade(running, "--watch", "soon").returncode == 2
    assert running.master() == old
    running.stop()
    assert upgrade(running).returncode == 3


def test_in_the_foreground(instance: Instance) -> None:
    """nginx by itself takes no new binary while its parent lives."""
    with Upstream() as upstream:
        instance.file.write_text(
            instance.file.read_text().replace("http://127.0.0.1:9", upstream.url)
        )
        process = subprocess.Popen(
            instance.line("start", "--foreground"),
            env=instance.environment,
            stdout=subprocess.DEVNULL,
        )
        wait_until(lambda: instance.get("/one") == 200, "the gateway")
        instance.succeed("upgrade", "--watch", "0.3")
        assert process.wait(30) == 0
        assert instance.get("/one") == 200
        assert instance.status()["pid"] != process.pid
        instance.succeed("upgrade", "--watch", "0.3")
        assert instance.get("/one") == 200


def test_the_version_before(instance: Instance) -> None:
    """What is installed changes below a gateway that runs: its version, its file's meaning."""
    root = instance.folder / "sluice"
    instance.command = copy_checkout(root)
    version = root / "gateway" / "version.lua"
    now = version.read_text()
    before = now.replace('product = "', 'product = "0.0.')
    version.write_text(before)
    assert before != now

    def install(text: str) -> None:
        """As a package manager does: new files take the place of old ones."""
        new = version.with_suffix(".new")
        new.write_text(text)
        new.rename(version)
        module = root / "build" / "module" / "ngx_sluice_module.so"
        shutil.copy(module, module.with_suffix(".new"))
        module.with_suffix(".new").rename(module)

    with Upstream() as upstream:
        instance.file.write_text(
            instance.file.read_text().replace("http://127.0.0.1:9", upstream.url)
        )
        instance.succeed("start")
        for text in (now, before):
            install(text)
            said = instance.succeed("upgrade", "--watch", "0.3")
            wait_until(lambda: "former" not in instance.status(), "the old nginx to leave")
            product = text.partition('product = "')[2].partition('"')[0]
            assert said.startswith(f"upgraded to sluice {product} ")
            assert instance.get("/one") == 200
            assert upstream.last.headers.get("via") == f"1.1 sluice/{product}"
            assert instance.status()["version"] == product
        # Not the file that the running one has mapped.
        module = root / "build" / "module" / "ngx_sluice_module.so"
        module.unlink()
        module.write_text("no module")
        assert instance.refuse("upgrade")[-1] == KEPT
        assert instance.get("/one") == 200
