"""Single changes: that the figures come, and are of the right size; the base is waited for."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import change
import publish
import pytest
from scenario import Described
from setting import prepared
from verify import InvalidRun


class Status(BaseHTTPRequestHandler):
    """An admin listener; the control worker looks at its files before the third answer."""

    protocol_version = "HTTP/1.1"
    asked = 0
    looks_at = 3

    def do_GET(self) -> None:
        Status.asked += 1
        known = {"base": 7} if Status.asked >= Status.looks_at else {}
        body = json.dumps({"control": {"state": "live", **known}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[change.Changed]:
    monkeypatch.setattr(Status, "asked", 0)
    with HTTPServer(("127.0.0.1", 0), Status) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        found = object.__new__(change.Changed)
        found.admin = f"127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()
        thread.join()


def test_the_base_is_asked_for_until_status_names_it(gateway: change.Changed) -> None:
    assert gateway.base() == 7
    assert Status.asked == Status.looks_at


def test_a_base_that_is_never_named_ends_the_run(
    gateway: change.Changed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Status, "looks_at", 1_000_000)
    monkeypatch.setattr(change, "BASE_TIMEOUT_S", 0)
    with pytest.raises(InvalidRun, match="names no base"):
        gateway.base()


@pytest.mark.long
def test_changes_are_timed_until_they_are_published() -> None:
    data = {
        "workers": 1,
        "publish_routes": [20, 2000],
        "publish_rounds": 4,
        "publish_changes": 10,
    }
    scenario = Described("change", "change", "change", {}, {}, data)
    with prepared(scenario, time.monotonic()) as setting:
        found = publish.measure(setting)
    assert set(found) == {"publish_growth"} | {
        f"publish_us_p{share}_{routes}{case}"
        for share in (50, 99)
        for routes in (20, 2000)
        for case in ("", "_empty", "_half", "_full", "_merging")
    }
    assert 0.1 < found["publish_growth"].value < 10
    for routes in (20, 2000):
        median, most = (found[f"publish_us_p{share}_{routes}"].value for share in (50, 99))
        assert 1 < median < most < 1e6
