"""Containers of the image of packaging/container, by namespaces instead of an engine.

The image is this machine's root with a folder over it, in which `setup` has done what it does in
the image; the checkout is in the place of the packages. What a container writes ends with it.
"""

import contextlib
import functools
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ports import Ports
from trouble import TROUBLE

import guard
from instance import AS_ROOT, ONE, SECONDS
from sluice import COMMAND, ROOT, SUPPORT, sanitizers
from wire import DEADLINE, ClosedEarly, Wire, wait_until

TOOLS = ROOT / "packaging" / "container"
RECIPE = (TOOLS / "Containerfile").read_text().replace("\\\n", " ")

PREFIX = "/usr/local/kong"
STRANGER = "54321:0"
"""A user whom no passwd knows, as OpenShift chooses one."""
KONG = "1000:1000"
ROOT_USER = "0:0"
ROOT_RIGHTS = "+chown,+dac_override,+fowner,+kill,+setgid,+setuid,+net_bind_service"
"""Those of an engine's default that matter here."""


MAKE_IMAGE = """
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
mount --bind "$3" "$1/root/mnt"
ln -s "$4" "$1/root/usr/bin/sluice"
# Whom this machine may have, and a Debian has not.
sed -i "/^[^:]*:[^:]*:1000:/d" "$1/root/etc/passwd" "$1/root/etc/group"
chroot "$1/root" /mnt/setup
cp -a "$1/upper/." "$2"
"""
"""What an engine does with the recipe: FOLDER-TO-MOUNT-IN, IMAGE, TOOLS, COMMAND."""


def recipe(instruction: str) -> str:
    """The words of the recipe's last line of a kind."""
    return re.findall(rf"^{instruction} (.*)$", RECIPE, re.MULTILINE)[-1]


def image_environment() -> dict[str, str]:
    """ENV of the recipe."""
    return dict(word.split("=", 1) for word in shlex.split(recipe("ENV")))


def words_of(instruction: str) -> list[str]:
    """A line of the recipe that is a list."""
    return [str(word) for word in re.findall(r'"([^"]*)"', recipe(instruction))]


@functools.cache
def can_contain() -> bool:
    """Whether this process may make namespaces and file systems, and any user may enter the
    checkout."""
    if not AS_ROOT or not all(folder.stat().st_mode & 1 for folder in [ROOT, *ROOT.parents]):
        return False
    try_it = (
        'mount -t tmpfs t "$1" && mkdir "$1/o" && mount -t overlay -o "lowerdir=$1/o:/" o "$1/o"'
    )
    folder = guard.folder("sluice-overlay-")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", try_it, "sh", folder], capture_output=True, check=False
    )
    folder.rmdir()
    return done.returncode == 0


@functools.cache
def image() -> Path:
    """The folder that is laid over this machine's root: made once."""
    folder, place = guard.folder("sluice-image-"), guard.folder("sluice-image-root-")
    subprocess.run(
        ["unshare", "--mount", "sh", "-euc", MAKE_IMAGE, "sh", place, folder, TOOLS, COMMAND],
        check=True,
    )
    place.rmdir()
    return folder


def with_default_signals() -> None:
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(name, signal.SIG_DFL)


class Container:
    """One that runs; `out` and `err` are what it has printed.

    `command`: of the image when absent; `entrypoint` the same. `environment` is added to the
    image's, and what keeps tests small to both. `files`: path in the container -> text.
    """

    def __init__(
        self,
        environment: dict[str, str],
        command: list[str] | None = None,
        *,
        entrypoint: list[str] | None = None,
        files: dict[str, str] | None = None,
        user: str = KONG,
        options: list[str] | None = None,
        binds: dict[Path, str] | None = None,
    ) -> None:
        self.root = guard.folder("sluice-container-")
        self.files = guard.folder("sluice-container-files-")
        self.ports = Ports()
        self.port, self.admin, self.status = (self.ports.take() for _ in range(3))
        self.user = user
        self.environment = image_environment() | {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "SLUICE_WORKERS": "2",
            "SLUICE_WORKER_CONNECTIONS": "512",
            "KONG_PROXY_LISTEN": f"127.0.0.1:{self.port}",
            "KONG_ADMIN_LISTEN": f"127.0.0.1:{self.admin}",
        }
        self.environment |= {name: os.environ[name] for name in sanitizers()}
        self.environment |= {name: self.fill(text) for name, text in environment.items()}
        self.out, self.err = bytearray(), bytearray()
        self._readers: list[threading.Thread] = []
        ends = [self._collect(into) for into in (self.out, self.err)]
        words = ["shm=64m", *(options or [])]
        words += [f"bind={source}:{target}" for source, target in (binds or {}).items()]
        words += [f"bind={self.write(path, text)}:{path}" for path, text in (files or {}).items()]
        # Last: the checkout may lie in a folder over which something is mounted, as /tmp.
        words.append(f"bind={ROOT}:{ROOT}")
        if user == ROOT_USER:
            words.append(f"rights={ROOT_RIGHTS}")
        inside = [SUPPORT / "container.sh", self.root, image(), user, *words, "--"]
        entrypoint = words_of("ENTRYPOINT") if entrypoint is None else entrypoint
        command = words_of("CMD") if command is None else command
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", *inside]
            + [self.fill(word) for word in entrypoint + command],
            env=self.environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=ends[0],
            stderr=ends[1],
            # A shell's background job has others: signals that are ignored stay so.
            preexec_fn=with_default_signals,
        )
        for end in ends:
            os.close(end)

    def fill(self, text: str) -> str:
        """A text of a public file with this container's ports in the place of Kong's."""
        ports = {"8000": self.port, "8001": self.admin, "8100": self.status}
        return re.sub(r"(?<=:)(8000|8001|8100)\b", lambda found: str(ports[found[0]]), text)

    def write(self, path: str, text: str) -> Path:
        """Writes a file that is bound into the container."""
        source = self.files / path.replace("/", "_")
        source.write_text(text)
        # What is COPYd into an image may be run.
        source.chmod(0o755)
        return source

    def _collect(self, into: bytearray) -> int:
        reading, writing = os.pipe()
        # As engines do: the logs are opened by name.
        os.fchown(writing, int(self.user.partition(":")[0]), 0)

        def read(source: BinaryIO) -> None:
            while data := source.read1(65536):
                into.extend(data)

        reader = threading.Thread(target=read, args=(os.fdopen(reading, "rb"),), daemon=True)
        reader.start()
        self._readers.append(reader)
        return writing

    def first(self) -> int:
        """Its first process, as this machine numbers it."""
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def status_of(self, path: str, port: int | None = None) -> int:
        """What a request is answered with; 0: by nobody."""
        with contextlib.suppress(OSError, ClosedEarly), Wire(port or self.port) as wire:
            return wire.ask(path).status
        return 0

    def run(self, *words: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command within, as `exec` of an engine does."""
        return subprocess.run(
            self._within(words, user),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """The same, without waiting for its end."""
        return subprocess.Popen(self._within(words), env=self.environment)

    def _within(self, words: tuple[str, ...], user: str | None = None) -> list[str]:
        enter = ["nsenter", f"--target={self.first()}", "--mount", "--pid", "--root", "--wd"]
        uid, _, gid = (user or self.user).partition(":")
        return [*enter, f"--setuid={uid}", f"--setgid={gid}", *words]

    def states(self) -> list[tuple[str, str]]:
        """The commands of its processes, each with its state."""
        space, found = Path(f"/proc/{self.first()}/ns/pid").readlink(), []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "ns" / "pid").readlink() == space:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found.append((line.decode(), fields[0]))
        return found

    def processes(self) -> str:
        """Their command lines."""
        return "\n".join(line for line, _ in self.states())

    def sees(self, pattern: str) -> None:
        """Waits for what it prints."""
        wait_until(
            lambda: re.search(pattern, (self.out + b"\n" + self.err).decode()),
            f"'{pattern}' to be said",
        )

    def sees_no_trouble(self) -> None:
        """Reads its error log, where that is printed."""
        lines = self.err.decode().splitlines()
        assert [line for line in lines if TROUBLE.search(line)] == []

    def serves(self) -> None:
        """Waits until it does."""
        wait_until(
            lambda: self.process.poll() is not None or self.status_of("/one") == 200, "it to serve"
        )
        assert self.process.poll() is None, self.err.decode()

    def end(self) -> int:
        """The exit code of one that ends by itself; all that it has said has been read then."""
        code = self.process.wait(SECONDS)
        for reader in self._readers:
            reader.join(SECONDS)
        return code

    def close(self) -> None:
        """Ends it, and removes its files."""
        # By its first process: unshare's own end is not its end once it has changed its user.
        with contextlib.suppress(OSError, ValueError):
            os.kill(self.first(), signal.SIGKILL)
        self.process.wait(DEADLINE)
        self.ports.release()
        self.root.rmdir()
        guard.remove(self.files)


def one(url: str) -> str:
    """A declarative file whose route /one leads to an upstream."""
    return ONE.format(url=url)


def reader_of(fifo: Path) -> int | None:
    """The other end of a pipe whose reader waits until somebody writes; None: nobody reads it."""
    with contextlib.suppress(OSError):
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    return None


Contained = Callable[..., Container]
"""Starts one: what `Container` takes."""
