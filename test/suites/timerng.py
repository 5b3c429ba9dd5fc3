#!/usr/bin/env python3
"""Runs the suite of lua-resty-timer-ng against `compat/resty/timerng`.

Its specs are not ours and stay outside this repository: the argument names a checkout. They run
under busted in a timer of nginx, as under its own `resty`: an nginx for each file, all at a time.

    test/suites/timerng.py <checkout> [--original] [02-at_spec.lua ...]
"""

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS_PER_FILE = 900

# Patterns of names, by file, that say nothing about the public interface.
ASIDE = {
    "05-sys-start-freeze_spec.lua": ("worker exiting", "fakes ngx.worker.exiting"),
    "08-auto_scaling_spec.lua": ("auto%-scaling", "reads private functions (_debug_...)"),
}

RESULT = re.compile(r"^(not )?ok \d+ - (.*)$")

CONF = """\
{modules}
daemon off;
master_process off;
pid nginx.pid;
error_log error.log notice;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path tmp;
    proxy_temp_path tmp;
    fastcgi_temp_path tmp;
    scgi_temp_path tmp;
    uwsgi_temp_path tmp;
    lua_max_running_timers 1024;
    lua_max_pending_timers 1024;
    lua_package_path "{path};;";
    init_worker_by_lua_block {{
        assert(ngx.timer.at(0, function()
            -- The command line of busted.
            _G.arg = {{ {arguments} }}
            require("busted.runner")({{ standalone = false }})
            os.exit(0) -- it does so itself where a test has failed
        end))
    }}
}}
"""


def platform(name: str) -> list[str]:
    """What cli/options/platform.lua says about this machine."""
    command = [ROOT / "scripts/platform", name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def configuration(spec: Path, *, original: bool) -> str:
    """The nginx.conf that runs a file."""
    checkout = spec.parents[1]
    modules = platform("nginx_modules")
    folders = [checkout / "lib"]
    if not original:
        modules.append(str(ROOT / "build/module/ngx_sluice_module.so"))
        folders = [ROOT / "compat", ROOT / "lib"]
    arguments = [f"--directory={checkout}", "--output=TAP", f"--pattern={spec.name}"]
    if spec.name in ASIDE:
        arguments.append(f"--filter-out={ASIDE[spec.name][0]}")
    arguments.append(str(spec))
    path = [f"{folder}/?.lua;{folder}/?/init.lua" for folder in folders]
    return CONF.format(
        modules="\n".join(f"load_module {module};" for module in modules),
        path=";".join([*path, f"{checkout}/spec/?.lua"]),
        arguments=", ".join(f"[[{argument}]]" for argument in arguments),
    )


def run_file(spec: Path, *, original: bool) -> tuple[list[str], list[str]]:
    """Runs one file; the names of what passed, and of what failed with why."""
    with tempfile.TemporaryDirectory(prefix="sluice-suite-") as folder:
        Path(folder, "nginx.conf").write_text(configuration(spec, original=original))
        command = [*platform("nginx_binary"), "-p", folder, "-c", "nginx.conf", "-e", "error.log"]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS_PER_FILE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [], [f"{spec.name}: not done in {SECONDS_PER_FILE} s"]
        log = Path(folder, "error.log").read_text(errors="replace")
    passed: list[str] = []
    failed: list[str] = []
    for line in done.stdout.splitlines():
        result = RESULT.match(line)
        if result:
            (failed if result[1] else passed).append(result[2])
        elif line.startswith("#") and failed:
            failed[-1] += f"\n       {line[1:].strip()}"
    if not passed and not failed and spec.name not in ASIDE:
        failed.append(f"{spec.name} reported nothing:\n{done.stdout}{log}")
    return passed, failed


def main() -> int:
    """Runs the public specs; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="of lua-resty-timer-ng")
    parser.add_argument("--original", action="store_true", help="run it against its own library")
    parser.add_argument("files", nargs="*", help="of the suite, such as 02-at_spec.lua")
    arguments = parser.parse_args()
    folder = arguments.checkout.resolve() / "spec"
    specs = [folder / name for name in arguments.files] or sorted(folder.glob("*_spec.lua"))
    if not specs:
        sys.exit(f"timerng.py: {arguments.checkout} is no checkout of lua-resty-timer-ng")
    passed = failed = 0
    with ThreadPoolExecutor(len(specs)) as pool:
        for good, bad in pool.map(lambda spec: run_file(spec, original=arguments.original), specs):
            for name in good:
                print(f"passed {name}")
            for name in bad:
                print(f"FAILED {name}")
            passed += len(good)
            failed += len(bad)
    for name, (pattern, reason) in ASIDE.items():
        print(f"aside  {name}, {pattern}: {reason}")
    print(f"lua-resty-timer-ng: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
