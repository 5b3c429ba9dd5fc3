"""What entries of log plugins have that depends on the protocol; tunnels.py makes the requests."""

from typing import Any

from tunnels import SAID

from sluice import Gateway

Entry = dict[str, Any]


def check_http2_entry(running: Gateway, entry: Entry) -> None:
    """That of tunnels.by_http2()."""
    request, response = entry["request"], entry["response"]
    assert request["method"] == "GET"
    assert request["url"] == f"https://h:{running.tls_port}{request['uri']}"
    assert request["headers"] == {"host": "h"}
    assert request["tls"]["version"] == "TLSv1.3"
    assert request["tls"]["client_verify"] == "NONE"
    assert request["size"] > 0
    assert response["status"] == 200
    assert response["headers"]["content-type"] == "application/json"
    assert response["size"] > int(response["headers"]["content-length"])
    check_proxied(entry, "200")


def check_switch_entry(running: Gateway, entry: Entry) -> None:
    """That of tunnels.by_upgrade(), which is whole."""
    request, response = entry["request"], entry["response"]
    assert request["url"] == f"http://localhost:{running.proxy_port}{request['uri']}"
    assert request["headers"]["upgrade"] == "websocket"
    assert "tls" not in request
    assert response["status"] == 101
    assert response["headers"]["upgrade"] == "websocket"
    assert response["headers"]["connection"].lower() == "upgrade"
    assert "content-length" not in response["headers"]
    lines = [f"{name}: {value}\r\n" for name, value in response["headers"].items()]
    head = len("HTTP/1.1 101 Switching Protocols\r\n\r\n") + len("".join(lines))
    assert response["size"] >= head + len(SAID)
    check_proxied(entry, "101")


def check_proxied(entry: Entry, status: str) -> None:
    assert entry["source"] == "upstream"
    assert entry["upstream_status"] == status
    assert entry["upstream_uri"] == entry["request"]["uri"]
    assert len(entry["tries"]) == 1
    assert entry["route"]["name"] == "route"
    assert all(value >= 0 for value in entry["latencies"].values())
