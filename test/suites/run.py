#!/usr/bin/env python3
"""Runs the suites of libraries whose names `compat/` has against it: `LIBRARIES` below.

Their tests are not ours and stay outside this repository: the arguments name a checkout of the
library, and one of Test::Nginx (or the folder that holds its `Test/Nginx`). aside.toml has the
blocks that say nothing about the public interface, or need what stock nginx does not have.

    test/suites/run.py <checkout> <test-nginx> [--original] [name.t ...]
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASIDE = Path(__file__).with_name("aside.toml")
SECONDS_PER_FILE = 600
# One block of lua-resty-worker-events fills a dictionary, with a debug line for each item.
SECONDS_PER_REQUEST = 60

# What each suite puts on its package path, and a file that tells one checkout from another.
LIBRARIES = {
    "lua-resty-http": ("lib", "lib/resty/http_connect.lua"),
    "lua-resty-counter": ("lib", "lib/resty/counter.lua"),
    "lua-resty-jit-uuid": ("lib", "lib/resty/jit-uuid.lua"),
    "lua-resty-lock": ("lib", "lib/resty/lock.lua"),
    "lua-resty-events": ("lualib", "lualib/resty/events/init.lua"),
    "lua-resty-worker-events": ("lib", "lib/resty/worker/events.lua"),
}

RESULT = re.compile(r"^(not )?ok \d+ - t/(\S+) TEST (\d+): (.*)$")
BLOCK = re.compile(r"^=== TEST (\d+): (.*)$", re.MULTILINE)

Block = tuple[str, int]
"""A file of the suite, and the number of a block in it."""


def platform(name: str) -> list[str]:
    """What cli/options/platform.lua says about this machine."""
    command = [ROOT / "scripts/platform", name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def blocks_of(suite: str, checkout: Path) -> tuple[dict[Block, str], dict[Block, str]]:
    """The public blocks with their titles, and those aside with the reason."""
    titles = {
        (path.name, int(number)): title.strip()
        for path in sorted((checkout / "t").glob("*.t"))
        for number, title in BLOCK.findall(path.read_text())
    }
    aside = {}
    for entry in tomllib.loads(ASIDE.read_text()).get(suite, []):
        for block in titles:
            if block[0] in entry["files"] and block[1] in entry.get("blocks", [block[1]]):
                aside[block] = entry["reason"]
    return {block: title for block, title in titles.items() if block not in aside}, aside


def environment(work: Path, test_nginx: Path, *, with_sluice: bool) -> dict[str, str]:
    """What Test::Nginx and the libraries are told."""
    modules = platform("nginx_modules")
    echo = Path(modules[0]).with_name("ngx_http_echo_module.so")
    if echo.exists():
        modules.append(str(echo))
    if with_sluice:
        modules.append(str(ROOT / "build/module/ngx_sluice_module.so"))
    library = test_nginx / "lib"
    return os.environ | {
        "PERL5LIB": str(library if library.is_dir() else test_nginx),
        "TEST_NGINX_BINARY": platform("nginx_binary")[0],
        "TEST_NGINX_LOAD_MODULES": " ".join(modules),
        "TEST_NGINX_SERVROOT": str(work / "servroot"),
        "TEST_NGINX_TIMEOUT": str(SECONDS_PER_REQUEST),
    }


def lay_out(work: Path, suite: str, checkout: Path, *, original: bool) -> None:
    """The folder that the suite runs in: its tests, beside our files where it expects its own."""
    (work / "t").symlink_to(checkout / "t")
    library = work / LIBRARIES[suite][0]
    if original:
        library.symlink_to(checkout / LIBRARIES[suite][0])
        return
    for package in (ROOT / "compat/resty", ROOT / "lib/sluice"):
        link_modules(package, library / package.name)


def link_modules(package: Path, at: Path) -> None:
    """Links to a package's modules; a folder's init.lua is also found as `<folder>.lua`."""
    at.mkdir(parents=True)
    for path in package.iterdir():
        (at / path.name).symlink_to(path)
        if (path / "init.lua").is_file():
            (at / f"{path.name}.lua").symlink_to(path / "init.lua")


def run_file(name: str, work: Path, env: dict[str, str]) -> dict[int, list[str]]:
    """Runs one file; for each block that reported, what failed in it."""
    try:
        done = subprocess.run(
            ["perl", f"t/{name}"],
            cwd=work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS_PER_FILE,
            check=False,
        )
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
        pid_file = work / "servroot/logs/nginx.pid"
        if pid_file.is_file():
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
    failures: dict[int, list[str]] = {}
    for line in output.decode(errors="replace").splitlines():
        result = RESULT.match(line)
        if result:
            failed = failures.setdefault(int(result[3]), [])
            if result[1]:
                failed.append(result[4])
    if not failures:
        print(output.decode(errors="replace"), file=sys.stderr)
    return failures


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="of the library whose suite is run")
    parser.add_argument("test_nginx", type=Path, help="a checkout of Test::Nginx")
    parser.add_argument("--original", action="store_true", help="run it against its own library")
    parser.add_argument("files", nargs="*", help="of the suite, such as events.t; default: all")
    return parser.parse_args()


def main() -> int:
    """Runs the public blocks; 1 if one of them failed."""
    arguments = parse()
    checkout = arguments.checkout.resolve()
    suites = [name for name, (_, mark) in LIBRARIES.items() if (checkout / mark).is_file()]
    if not suites:
        sys.exit(f"run.py: {checkout} is no checkout of {' or '.join(LIBRARIES)}")
    public, aside = blocks_of(suites[0], checkout)
    names = sorted({name for name, _ in public})
    if arguments.files:
        names = [name for name in names if name in arguments.files]
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="sluice-suite-") as folder:
        work = Path(folder)
        lay_out(work, suites[0], checkout, original=arguments.original)
        with_sluice = not arguments.original
        env = environment(work, arguments.test_nginx.resolve(), with_sluice=with_sluice)
        for name in names:
            reported = run_file(name, work, env)
            for (_, number), title in ((b, t) for b, t in public.items() if b[0] == name):
                failures = reported.get(number, ["did not report"])
                print(f"{'FAILED' if failures else 'passed'} {name} {number}: {title}")
                for failure in failures:
                    print(f"       {failure}")
                passed += not failures
                failed += bool(failures)
    for (name, number), reason in aside.items():
        print(f"aside  {name} {number}: {reason}")
    print(f"{suites[0]}: {passed} passed, {failed} failed, {len(aside)} aside")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
