"""The pool of upstream connections with ASan, UBSan and LSan in nginx."""

import random
from contextlib import ExitStack
from pathlib import Path

from var_servers import sanitized

from pools import HTTP, Either, List, answer, ask, named, walk
from upstream import Exchange
from wire import ClosedEarly


def test_a_walk_leaves_nothing_to_report(asan: dict[str, str], tmp_path: Path) -> None:
    with ExitStack() as stack:
        context = named(tmp_path)
        servers = [stack.enter_context(Either(answer, tls=context)) for _ in range(4)]
        server = stack.enter_context(sanitized(HTTP, "$args", asan, pool="6"))
        assert walk(server, servers, List(6), random.Random(15)) > 30


def test_upstreams_that_misbehave_leave_nothing_to_report(
    asan: dict[str, str], tmp_path: Path
) -> None:
    chosen = random.Random(16)

    def misbehave(exchange: Exchange) -> None:
        how = chosen.randrange(8)
        if how == 0:
            exchange.keep = False
        elif how == 1:
            exchange.abort()
        elif how == 2:
            answer(exchange)
            exchange.send(b"more" * chosen.choice([1, 2000]))
        elif how == 3:
            answer(exchange)
            exchange.keep = False
        elif how == 4:
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
            exchange.keep = False
        else:
            answer(exchange)

    with ExitStack() as stack:
        context = named(tmp_path)
        upstreams = [stack.enter_context(Either(misbehave, tls=context)) for _ in range(3)]
        texts = {"pool": "2 requests=5 timeout=20ms", "second": upstreams[0].address}
        server = stack.enter_context(sanitized(HTTP, "$args", asan, **texts))
        server.expect_log(r"\[(error|warn|crit)\]", range(1000))
        for _ in range(300):
            upstream = chosen.choice(upstreams)
            name = chosen.choice(["a.test", "b.test"])
            try:
                reply = ask(server, upstream, name, chosen.choice(["/http", "/https"]))
            except ClosedEarly:
                continue  # a response that its upstream has cut
            assert reply.status in (200, 502)
