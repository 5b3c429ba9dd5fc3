"""Random walks through requests, and hostile texts, with ASan, UBSan and LSan in nginx."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import test_var_texts as texts
from test_events_sanitizers import runtime
from test_var_random import HTTP, INDEX, TESTS, some_request, walk
from var_servers import Server

from sluice import ROOT
from wire import Wire

WALKS = 150


class Sanitized(Server):
    """With the module that has the sanitizers in it."""

    def write(self, text: str) -> None:
        super().write(text.replace("/build/module/", "/build/module-asan/"))


@contextmanager
def sanitized(
    http: str, index: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Server]:
    """A running server, which in the end has nothing to report."""
    subprocess.run([ROOT / "scripts" / "build-module", "asan"], check=True, timeout=300)
    suppressions = tmp_path / "suppressions"
    # What nginx and a cjson without sanitizers keep to the end.
    suppressions.write_text("leak:ngx_alloc\nleak:strbuf_init\n")
    server = Sanitized(http, index)
    monkeypatch.setenv("LD_PRELOAD", f"{runtime('libasan.so')}:{runtime('libubsan.so')}")
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=1")
    monkeypatch.setenv("LSAN_OPTIONS", f"suppressions={suppressions}")
    monkeypatch.setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    with server:
        yield server
        server.restart_workers()
        server.stop()
        log = server.error_log()
        assert "Sanitizer" not in log
        assert "runtime error" not in log
        assert log.count("exited with code 0") == 2, "a leak, or a report, ends with another code"


def test_walks_leave_nothing_to_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    http = HTTP.replace("@tests@", TESTS)
    with sanitized(http, INDEX, monkeypatch, tmp_path) as server:
        server.expect_log(r"\[(error|warn)\]", range(100000))
        chosen = random.Random(1)
        with Wire(server.proxy_port) as wire:
            for _ in range(WALKS):
                lines = walk(server, wire, some_request(chosen))
                assert not [line for line in lines if line.startswith("DIFFERENT")]


def test_texts_leave_nothing_to_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with sanitized(texts.configuration(), texts.INDEX, monkeypatch, tmp_path) as server:
        texts.compare_random(server, 4)
