#!/usr/bin/env python3
"""Runs scripts of tlsfuzzer against a listener of Sluice and a server of nginx alone.

They are not ours and stay outside this repository: the argument names a checkout. nginx has the
same certificate, versions and ciphers. What only one of both fails is printed, and is ours to
explain; what both fail tells nothing of Sluice.

    test/suites/tlsfuzzer.py <checkout> [--python PYTHON] [--count N] [test-tls13-hrr.py ...]
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "nginx"))

from certificates import Pair, make  # noqa: E402
from sluice import NGINX, Gateway, Ports  # noqa: E402

SECONDS_PER_SCRIPT = 60

# More than Sluice's own: what most scripts of TLS 1.2 speak unless told otherwise.
CIPHERS = {"ssl_cipher_suite": "custom", "ssl_ciphers": "HIGH:!aNULL"}

# Scripts that are no test of a server by themselves, that measure time, or need more arguments.
ASIDE = re.compile(r"marvin|lucky13|minerva|timing|bleichenbacher|_stub|client-cert|rsa-keys-gen")

# Scripts draw some of their conversations by chance: both servers get the same.
SAME = """
import random, runpy, sys
random.seed(1)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""

CONF = """\
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/tmp;
    proxy_temp_path {folder}/tmp;
    fastcgi_temp_path {folder}/tmp;
    scgi_temp_path {folder}/tmp;
    uwsgi_temp_path {folder}/tmp;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {folder}/pem;
        ssl_certificate_key {folder}/pem;
{settings}
        return 404;
    }}
}}
"""


@contextmanager
def plain(pair: Pair, running: Gateway) -> Iterator[int]:
    """An nginx with what the gateway's says of versions and ciphers; its port."""
    rendered = (running.settings["prefix"] / "nginx.conf").read_text()
    settings = re.findall(r"^ *(?:ssl_(?!certificate)|http2_)[^;]*;", rendered, re.M)
    ports = Ports()
    port = ports.take()
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        at.chmod(0o755)
        (at / "pem").write_text(pair.cert + pair.key)
        conf = CONF.format(folder=folder, port=port, settings="\n".join(dict.fromkeys(settings)))
        (at / "conf").write_text(conf)
        nginx = subprocess.Popen([NGINX, "-c", str(at / "conf")], stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            yield port
        finally:
            nginx.terminate()
            nginx.wait(10)
            ports.release()


def run(script: Path, port: int, python: str, count: str) -> tuple[str, set[str]]:
    """How a script ends, and the names of what has failed in it."""
    command = [python, "-c", SAME, str(script), "-p", str(port), "-n", count]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS_PER_SCRIPT,
            cwd=script.parents[1],
        )
    except subprocess.TimeoutExpired:
        return "no end", set()
    failed = done.stdout.rpartition("FAILED:")[2] if "FAILED:" in done.stdout else ""
    names = set(re.findall(r"^\t(.*)$", failed, re.M))
    return ("passed" if done.returncode == 0 else "failed"), names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--python", default=sys.executable, help="one that has tlslite-ng")
    parser.add_argument("--count", default="100", help="conversations of a script, by chance")
    parser.add_argument("scripts", nargs="*")
    given = parser.parse_intermixed_args()
    folder = given.checkout.resolve() / "scripts"
    names = given.scripts or sorted(p.name for p in folder.glob("test-*.py"))
    pair = make("localhost", kind="rsa")
    certificate = {"cert": pair.cert, "key": pair.key, "snis": [{"name": "*"}]}
    count: dict[str, int] = {}
    differences = 0
    running = Gateway({"certificates": [certificate]}, tls="ssl http2", **CIPHERS)
    running.expect_log(r"\[(?:crit|error)\]", range(10**6))
    with running, plain(pair, running) as port, ThreadPoolExecutor(2) as pool:
        for name in names:
            if ASIDE.search(name):
                continue
            ends = [
                pool.submit(run, folder / name, p, given.python, given.count)
                for p in (running.tls_port, port)
            ]
            (ours, our_names), (theirs, their_names) = (end.result() for end in ends)
            count[ours] = count.get(ours, 0) + 1
            if ours != theirs or our_names != their_names:
                differences += 1
                print(f"{name}: {ours}, nginx alone: {theirs}")
                for other in sorted(our_names ^ their_names):
                    print(f"    {'Sluice' if other in our_names else 'nginx'} alone fails: {other}")
            else:
                print(f"{name}: both {ours} ({len(our_names)})", flush=True)
    print(f"{count}; {differences} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
