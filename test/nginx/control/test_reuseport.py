"""Listeners with `reuseport`: a socket gets connections only where somebody takes them."""

import itertools
import os
import signal
from functools import partial

from images_nginx import HTTP, Images
from wire import wait_until

ASKED = 60
LIVE = 'return w.live(1, w.routes("/a"))'
WORKERS = 4

SHARED = HTTP.replace("@port@;", "@port@ reuseport;").replace("@control@;", "@control@ reuseport;")


def ask_all(nginx: Images) -> None:
    """Every connection is accepted: by each of the traffic workers, never by worker 0; those of
    the control listener by worker 0 alone."""
    zero = nginx.zero()
    pids = [nginx.match("/a")["pid"] for _ in range(ASKED)]
    assert zero not in pids
    assert len(set(pids)) == len(nginx.workers()) - 1
    assert {nginx.zero() for _ in range(ASKED)} == {zero}


def are_new(nginx: Images, old: set[int], count: int) -> bool:
    """Whether so many workers accept, and none of the old ones."""
    workers = set(nginx.workers())
    return not old & workers and len(workers) == count


def test_every_connection_is_taken() -> None:
    with Images(workers=WORKERS, http=SHARED) as nginx:
        nginx.run(LIVE)
        ask_all(nginx)


def test_after_reloads_with_more_and_fewer_workers() -> None:
    with Images(workers=WORKERS, http=SHARED) as nginx:
        nginx.run(LIVE)
        conf = nginx.prefix / "nginx.conf"
        for before, after in itertools.pairwise((WORKERS, 6, 2, 3)):
            old = set(nginx.workers())
            text = conf.read_text()
            assert f"worker_processes {before};" in text
            conf.write_text(
                text.replace(f"worker_processes {before};", f"worker_processes {after};")
            )
            os.kill(nginx.master(), signal.SIGHUP)
            wait_until(partial(are_new, nginx, old, after), "the new workers")
            ask_all(nginx)


def test_after_an_upgrade() -> None:
    with Images(workers=WORKERS, http=SHARED) as nginx:
        nginx.run(LIVE)
        old = nginx.master()
        nginx.upgrade()
        nginx.end(old)
        ask_all(nginx)
