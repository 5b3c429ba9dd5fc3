"""What root's commands do where somebody else may write: he gets neither terminal nor file."""

import contextlib
import json
import os
import pty
import pwd
import select
import shlex
import signal
from collections.abc import Callable

import pytest

from instance import AS_ROOT, SECONDS, Instance, copy_checkout
from wire import wait_until

pytestmark = pytest.mark.skipif(not AS_ROOT, reason="needs root to become another user")

NOBODY = pwd.getpwnam("nobody")


def at_a_terminal(
    instance: Instance, line: str, act: Callable[[int], None] = lambda _: None
) -> tuple[int, str]:
    """Runs a line of a shell at a terminal of its own: exit code, and what stands there then."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(instance.folder)
        os.execve("/bin/sh", ["sh", "-c", line], instance.environment)
    text = b""
    try:
        act(terminal)
        # Reading fails when the last one at the other end has gone.
        with contextlib.suppress(OSError):
            while select.select([terminal], [], [], SECONDS)[0]:
                text += os.read(terminal, 65536)
    finally:
        # Whoever is still there is told that it hangs up.
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode()


HIJACK = """#!/usr/bin/python3
import fcntl, os, termios
try:
    with open("/dev/tty", "r+b", buffering=0) as terminal:
        for char in "id\\n":
            fcntl.ioctl(terminal, termios.TIOCSTI, char.encode())
    said = "typed"
except OSError as error:
    said = error.strerror
with open("{said}", "a") as out:
    out.write(f"{{os.getuid()}}: {{said}}\\n")
"""
"""What types into the shell of who runs it."""


@pytest.mark.parametrize("shell", ["exec", ""])
def test_root_lends_its_terminal_to_nobody(instance: Instance, shell: str) -> None:
    """As user of the prefix a command runs what it is told there: it may type nothing for root."""
    instance.command = copy_checkout(instance.folder / "sluice")
    instance.folder.chmod(0o755)
    instance.prefix.mkdir()
    os.chown(instance.prefix, NOBODY.pw_uid, NOBODY.pw_gid)
    instance.environment["SLUICE_USER"] = "nobody"
    instance.succeed("start")
    said = instance.folder / "said"
    said.touch()
    os.chown(said, NOBODY.pw_uid, NOBODY.pw_gid)
    program = instance.folder / "nginx"
    program.write_text(HIJACK.format(said=said))
    program.chmod(0o755)
    settings = instance.prefix / "settings.json"
    found = json.loads(settings.read_text())
    settings.write_text(json.dumps(found | {"nginx_binary": str(program)}))
    # A shell's job, and one of its children.
    status, text = at_a_terminal(
        instance, f"{shell} {shlex.join(instance.line('status'))}; exit $?"
    )
    assert (status, "running" in text) == (0, True), text
    assert said.read_text() == f"{NOBODY.pw_uid}: No such device or address\n"
    settings.write_text(json.dumps(found))


@pytest.mark.parametrize("shell", ["exec", ""])
def test_root_ends_it_from_its_terminal(instance: Instance, shell: str) -> None:
    """In the foreground nginx is another's by then."""
    instance.command = copy_checkout(instance.folder / "sluice")
    instance.folder.chmod(0o755)
    instance.prefix.mkdir()
    os.chown(instance.prefix, NOBODY.pw_uid, NOBODY.pw_gid)
    instance.environment["SLUICE_USER"] = "nobody"
    line = f"{shell} {shlex.join(instance.line('start', '--foreground'))}; exit $?"

    def end(terminal: int) -> None:
        wait_until(lambda: instance.get("/") == 404, "it to serve")
        os.write(terminal, b"\x03")

    # 0: nginx ended; a shell that was told as well ends by that.
    assert at_a_terminal(instance, line, end)[0] in (0, -signal.SIGINT)
    assert instance.status()["running"] is False


@pytest.mark.parametrize("which", ["the folder", "above", "everybody"])
def test_a_log_where_somebody_could_put_a_link_is_refused(instance: Instance, which: str) -> None:
    """As workers can in the folder of the package's logs, where root's nginx has another prefix."""
    folder = instance.folder / "log" / "sluice"
    folder.mkdir(parents=True)
    changed = folder.parent if which == "above" else folder
    if which == "everybody":
        changed.chmod(0o1777)
    else:
        os.chown(changed, NOBODY.pw_uid, NOBODY.pw_gid)
    log = folder / "access.log"
    (line,) = instance.refuse("start", access_log=str(log))
    who = "all users" if which == "everybody" else "nobody"
    assert line.startswith(
        f"sluice: access_log: {who} could put a link into {changed}, which nginx would"
    )
    assert not log.exists()
    os.chown(changed, 0, 0)
    changed.chmod(0o755)
    instance.succeed("start", access_log=str(log))
    os.chown(changed, NOBODY.pw_uid, NOBODY.pw_gid)
    (line,) = instance.refuse("reopen")
    assert line.startswith(f"sluice: access_log: nobody could put a link into {changed}, ")


def test_tokens_are_those_of_the_owner_of_the_prefix(instance: Instance) -> None:
    """A stranger's file of tokens is read by nobody; root's command writes as the owner."""
    instance.command = copy_checkout(instance.folder / "sluice")
    instance.folder.chmod(0o755)
    instance.prefix.mkdir()
    os.chown(instance.prefix, NOBODY.pw_uid, NOBODY.pw_gid)
    path = instance.prefix / "tokens"
    instance.environment["SLUICE_USER"] = "nobody"
    done = instance.run("token", "add", "ci")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 0
    assert line.startswith("sluice: token 'ci' can only read; ")
    info = path.stat()
    assert (info.st_uid, info.st_mode & 0o777) == (NOBODY.pw_uid, 0o600)
    assert instance.succeed("token", "list") == "name  role\nci    read\n"
    # Root takes none of another user's: these would be keys to its gateway.
    del instance.environment["SLUICE_USER"]
    for words in (("token", "list"), ("token", "add", "mine")):
        (line,) = instance.refuse(*words)
        assert "nobody" in line or f"belongs to user {NOBODY.pw_uid}" in line
