"""Random walks through requests, and hostile texts, with ASan, UBSan and LSan in nginx."""

import random

import var_compared as texts
from var_servers import sanitized
from var_walks import HTTP, INDEX, TESTS, some_request, walk

from wire import Wire

WALKS = 150


def test_walks_leave_nothing_to_report(asan: dict[str, str]) -> None:
    with sanitized(HTTP, INDEX, asan, tests=TESTS) as server:
        server.expect_log(r"\[(error|warn)\]", range(100000))
        chosen = random.Random(1)
        with Wire(server.proxy_port) as wire:
            for _ in range(WALKS):
                lines = walk(server, wire, some_request(chosen))
                assert not [line for line in lines if line.startswith("DIFFERENT")]


def test_texts_leave_nothing_to_report(asan: dict[str, str]) -> None:
    with sanitized(texts.configuration(), texts.INDEX, asan) as server:
        texts.check_random(server, 4)
