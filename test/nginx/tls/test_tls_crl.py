"""Revocation lists in files of the operator's: `ssl_crl`."""

import contextlib
import os
import pwd
import signal
import ssl
import threading
from pathlib import Path

import pytest
from http2 import speaking
from tls_clients import OTHER_ID, ROOT_ID, World, asked, config, start

from certificates import Pair, connect, context, revoked
from sluice import Gateway, Start
from upstream import Exchange, Upstream
from wire import DEADLINE, wait_until

SIZE = 16 * 1024 * 1024
"""What a file may have."""

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def world() -> World:
    """Made once: keys take time."""
    return World()


def status(running: Gateway, client: Pair) -> int:
    """What a client is answered on a connection of its own."""
    return int(asked(running, client)[9:12])


def answer(wrapped: ssl.SSLSocket, request: bytes = REQUEST) -> bytes:
    """The status of one more request on a connection; empty where it was closed."""
    with contextlib.suppress(ConnectionError, ssl.SSLEOFError):
        wrapped.sendall(request)
        return wrapped.recv(65536)[9:12]
    return b""


def lists(tmp_path: Path, *texts: str) -> list[Path]:
    """Files with these lists."""
    files = [tmp_path / f"{i}.crl" for i in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return files


def test_which_lists_count(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    """Files and a configuration's own together: the issuer of a client has to have one of them, and
    those above it count where they are there.
    """
    root, middle = world.root, world.middle
    of_root, of_middle = revoked(root), revoked(middle)
    # files, own list -> what a client of the root, and one of the CA between, is answered
    for files, own, good, deep in [
        ([], None, 200, 200),
        ([of_root], None, 200, 401),
        ([of_root, of_middle], None, 200, 200),
        ([of_root + of_middle], None, 200, 200),
        ([of_root], of_middle, 200, 200),
        ([revoked(world.other)], None, 401, 401),
        ([revoked(root, world.good) + of_middle], None, 401, 200),
        ([of_middle, revoked(root, middle)], None, 200, 401),
        ([of_root, revoked(middle, world.deep)], None, 200, 401),
        ([revoked(middle, world.deep)], of_root, 200, 401),
        ([of_root], revoked(middle, world.deep), 200, 401),
    ]:
        given = config(world, upstream, **({"crl": own} if own else {}))
        with Gateway(
            given, tls="ssl", ask_client_certificate=True, ssl_crl=lists(tmp_path, *files)
        ) as running:
            assert (status(running, world.good), status(running, world.deep)) == (good, deep)


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_reload_reads_them_again(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path, is_linked: bool
) -> None:
    """The new lists are live when it returns: also on connections that are open, in workers that
    leave, and where the declarative file has changed with them.
    """
    given = config(world, upstream)
    (file,) = lists(tmp_path, revoked(world.root))
    link = tmp_path / "link"
    link.symlink_to(file)
    running = start(gateway, given, ssl_crl=link if is_linked else file, workers=2)

    def reload() -> None:
        done = running.command("reload")
        assert done.returncode == 0, done.stderr

    # Idle; idle, and verified by nobody; in the middle of a head; the same of who is not revoked.
    clients = [world.good, world.good, world.good, world.good, world.foreign]
    with contextlib.ExitStack() as stack:
        idle, unasked, begun, other, foreign = (
            stack.enter_context(connect(running.tls_port, "localhost", context(client=client)))
            for client in clients
        )
        for wrapped in (idle, begun, other):
            assert answer(wrapped) == b"200"
        assert answer(unasked, b"GET /free HTTP/1.1\r\nHost: localhost\r\n\r\n") == b"200"
        assert answer(foreign) == b"401"
        begun.sendall(REQUEST[:20])
        wait_until(lambda: running.client.get("/free").status_code == 200, "a request after it")
        # What is the same ends nothing.
        reload()
        assert answer(other) == b"200"
        file.write_text(revoked(world.root, world.good))
        running.write_config(given | {"consumers": [{"username": "new"}]})
        reload()
        assert status(running, world.good) == 401
        assert answer(begun, REQUEST[20:]) == b"421"
        assert answer(idle) in (b"", b"421")
        assert answer(unasked) in (b"", b"421")
        assert answer(foreign) in (b"", b"421")
    found = running.client.get(f"{running.admin}/consumers/new")
    assert found.status_code == 200
    # What comes from nobody's list any more.
    file.write_text(revoked(world.root))
    reload()
    assert status(running, world.good) == 200
    del running.settings["ssl_crl"]
    running.env = {"SLUICE_SSL_CRL": ""}
    file.write_text(revoked(world.root, world.good))
    reload()
    assert status(running, world.good) == 200


def test_who_is_not_revoked_comes_back(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    """A connection that was verified by the old lists ends where it is idle, and no request with
    it: its client makes another one, as with any that was kept for too long.
    """
    (file,) = lists(tmp_path, revoked(world.root))
    running = start(gateway, config(world, upstream), ssl_crl=file, idle_grace="60s")
    using = context(client=world.good)
    with connect(running.tls_port, "localhost", using) as wrapped:
        assert answer(wrapped) == b"200"
        file.write_text(revoked(world.root, world.foreign))
        assert running.command("reload").returncode == 0
        assert wrapped.recv(1) == b""
    assert status(running, world.good) == 200
    assert len(upstream.requests) == 2


def test_who_is_refused_is_verified_once(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    """One look into the lists for a connection, as for who passes: each reads all of them."""
    (file,) = lists(tmp_path, revoked(world.root, world.good))
    running = start(gateway, config(world, upstream), ssl_crl=file, log_level="info")
    with connect(running.tls_port, "localhost", context(client=world.good)) as wrapped:
        assert [answer(wrapped) for _ in range(3)] == [b"401"] * 3
    assert running.error_log().count("certificate is not verified: certificate revoked") == 1


def test_streams_of_a_worker_that_leaves(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    """Those that were asked for before a reload end; a connection of HTTP/2 that is idle then asks
    for none, and who asks in spite of GOAWAY is not answered by the old lists.
    """
    go_on = threading.Event()

    def hold(exchange: Exchange) -> None:
        if exchange.request.target == "/held":
            go_on.wait(DEADLINE)
        exchange.reply(200)

    upstream.handler = hold
    (file,) = lists(tmp_path, revoked(world.root))
    given = config(world, upstream)
    running = start(gateway, given, tls="ssl http2", ssl_crl=file, idle_grace="60s")
    with (
        speaking(running, "localhost", world.good) as idle,
        speaking(running, "localhost", world.good) as busy,
    ):
        first = idle.ask(host="localhost")
        assert idle.answers([first])[first][0] == 200
        held = busy.ask("/held", host="localhost")
        busy.flush()
        upstream.wait_for(2)
        file.write_text(revoked(world.root, world.good))
        assert running.command("reload").returncode == 0
        assert not list(idle.events())
        assert idle.last_stream == first
        late = busy.ask(host="localhost")
        busy.flush()
        go_on.set()
        answers = busy.answers([held, late])
        assert answers[held][0] == 200
        assert answers[late][0] in (0, 421)
    assert status(running, world.good) == 401
    assert [request.target for request in upstream.requests] == ["/", "/held"]


def test_an_upgrade_reads_them_again(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    (file,) = lists(tmp_path, revoked(world.root))
    running = start(gateway, config(world, upstream), ssl_crl=file)
    with connect(running.tls_port, "localhost", context(client=world.good)) as wrapped:
        assert answer(wrapped) == b"200"
        wrapped.sendall(REQUEST[:20])
        assert status(running, world.good) == 200
        title = Path(f"/proc/{running.workers()[0]}/cmdline")
        file.write_text(revoked(world.root, world.good))
        done = running.command("upgrade", "--watch", "0.3")
        assert done.returncode == 0, done.stderr
        wait_until(lambda: "is shutting down" in title.read_text(), "the old worker to leave")
        assert answer(wrapped, REQUEST[20:]) == b"421"
    assert status(running, world.good) == 401
    assert len(upstream.requests) == 2


def test_workers_need_not_read_them(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    """Root's file, which root's workers may not read; nor does a death of one change anything."""
    if os.geteuid() != 0:
        pytest.skip("root alone has workers of another user")
    (file,) = lists(tmp_path, revoked(world.root, world.good) + revoked(world.middle))
    file.chmod(0o600)
    assert pwd.getpwnam("nobody").pw_uid != 0
    running = start(gateway, config(world, upstream), ssl_crl=file, user="nobody")
    assert (status(running, world.good), status(running, world.deep)) == (401, 200)
    # One that is forked anew has what was read, whatever the file is now.
    file.unlink()
    (worker,) = running.workers()
    running.expect_log(f"worker process {worker} exited on signal 9")
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: running.workers() not in ([worker], []), "another worker")
    assert (status(running, world.good), status(running, world.deep)) == (401, 200)


def spoil(file: Path, how: str, world: World) -> None:
    """Makes something of a file that is no list of revocation."""
    text = file.read_text()
    begin, end = "-----BEGIN X509 CRL-----\n", "-----END X509 CRL-----\n"
    file.unlink()
    match how:
        case "missing":
            pass
        case "empty":
            file.touch()
        case "directory":
            file.mkdir()
        case "fifo":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "loop":
            file.symlink_to(file)
        case "huge":
            with file.open("w") as stream:
                stream.write(text)
                stream.truncate(SIZE + 1)
        case "no list":
            file.write_text(world.root.cert)
        case "no PEM":
            file.write_bytes(os.urandom(65536))
        case "garbage":
            file.write_text(f"{text}{begin}{'A' * 64}\n{end}")
        case "cut":
            file.write_text(text + text[: len(text) // 2])
        case "no end":
            file.write_text(f"{text}{begin}{('A' * 64 + chr(10)) * 200_000}")
        case "delta":
            file.write_text(text + revoked(world.root, is_delta=True))
        case "begins":
            file.write_text(f"{text}{begin * 600_000}")


FORMS = [
    *("missing", "empty", "directory", "fifo", "device", "loop", "huge", "no list", "no PEM"),
    *("garbage", "cut", "no end", "delta", "begins"),
]


def test_a_broken_file_is_refused(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    """With its path, by each command, in no time; what runs goes on with what it has."""
    (file,) = lists(tmp_path, revoked(world.root, world.good) + revoked(world.middle))
    right = file.read_text()
    running = start(gateway, config(world, upstream), ssl_crl=file)
    workers = running.workers()
    for form in FORMS:
        spoil(file, form, world)
        for command in ("check", "reload", "restart"):
            done = running.command(command)
            assert done.returncode == 1, (form, command, done.stdout)
            assert f"ssl_crl: cannot read {file}: " in done.stderr, (form, command, done.stderr)
        assert running.workers() == workers
        file.rmdir() if form == "directory" else file.unlink(missing_ok=True)
        file.write_text(right)
    assert (status(running, world.good), status(running, world.deep)) == (401, 200)
    assert running.command("reload").returncode == 0
    assert (status(running, world.good), status(running, world.deep)) == (401, 200)


def test_nginx_refuses_a_broken_file(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    """Nor does the master wait for one, or take half of one, where nobody has looked before."""
    (file,) = lists(tmp_path, revoked(world.root, world.good))
    right = file.read_text()
    running = start(gateway, config(world, upstream), ssl_crl=file)
    workers = running.workers()
    # Each line names the path; a file of such a size is a sparse one.
    running.expect_log(rf'\[emerg\].*"{file}"', len(FORMS))
    for n, form in enumerate(FORMS, start=1):
        spoil(file, form, world)
        os.kill(running.master(), signal.SIGHUP)
        wait_until(
            lambda n=n: running.error_log().count(f'"{file}"') >= n, f"what nginx says of {form}"
        )
        file.rmdir() if form == "directory" else file.unlink(missing_ok=True)
        file.write_text(right)
    assert running.workers() == workers
    assert status(running, world.good) == 401


def test_one_that_has_run_out_is_named(
    gateway: Start, upstream: Upstream, world: World, tmp_path: Path
) -> None:
    """By each command; and its clients are refused. Beside a newer one of its CA it is not."""
    over, good = revoked(world.root, is_over=True), revoked(world.root)
    (file,) = lists(tmp_path, over)
    warning = (
        f"warning: ssl_crl: {file}: revocation list number 1, of CN=root, expired on 2024-02-01"
    )
    running = start(gateway, config(world, upstream), ssl_crl=file)
    assert warning in running.warned
    assert status(running, world.good) == 401
    for command in ("check", "reload", "restart"):
        done = running.command(command)
        assert done.returncode == 0, done.stderr
        assert warning in done.stderr, command
    file.write_text(over + good)
    for command in ("check", "reload"):
        done = running.command(command)
        assert (done.returncode, done.stderr) == (0, ""), command
    assert status(running, world.good) == 200


def test_the_own_list_of_a_plugin_that_has_run_out_is_named(
    gateway: Start, upstream: Upstream, world: World
) -> None:
    """In a file, by its path; by the error log, where the Admin API writes it."""
    over = revoked(world.root, is_over=True)
    text = "revocation list number 1, of CN=root, expired on 2024-02-01"
    running = start(gateway, config(world, upstream, crl=over))
    warning = f'"mtls-auth".config.crl: {text}'
    assert warning in running.warned
    assert warning in running.command("check").stderr
    assert status(running, world.good) == 401
    other = start(gateway, None)
    other.expect_log(f"config.crl: {text}")
    put = other.client.put
    body = {"id": ROOT_ID, "cert": world.root.cert}
    assert put(f"{other.admin}/ca_certificates/{ROOT_ID}", json=body).status_code == 200
    plugin = {"name": "mtls-auth", "config": {"ca_certificates": [ROOT_ID], "crl": over}}
    assert put(f"{other.admin}/plugins/{OTHER_ID}", json=plugin).status_code == 200
