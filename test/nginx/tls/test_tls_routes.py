"""Routes by the name of the handshake."""

from certificates import connect, get
from sluice import Start
from upstream import Upstream


def test_the_name_of_the_handshake_chooses(gateway: Start, upstream: Upstream) -> None:
    services = [
        {"name": name, "url": f"{upstream.url}/{name}", "routes": [{"name": name} | route]}
        for name, route in {
            "exact": {"snis": ["A.example"], "paths": ["/"]},
            "wild": {"snis": ["*.example"], "paths": ["/"]},
            "host": {"hosts": ["a.example"], "paths": ["/"], "methods": ["PUT", "GET"]},
            "any": {"paths": ["/"]},
        }.items()
    ]
    running = gateway({"services": services}, tls="ssl")

    def asked(name: str | None, host: str = "h") -> str:
        with connect(running.tls_port, name) as wrapped:
            assert b" 200 " in get(wrapped, host=host)[:20]
        return upstream.last.path.strip("/")

    # Of two with as many kinds of conditions the older wins, which is the first of a file.
    assert asked("a.example") == "exact"
    assert asked("A.EXAMPLE.") == "exact"
    assert asked("b.example") == "wild"
    assert asked("other") == "any"
    assert asked(None) == "any"
    # The Host header is another condition, not another name.
    assert asked("other", host="a.example") == "host"
    assert asked("b.example", host="a.example") == "host"
    # Without TLS there is no name to differ.
    assert running.get("/").status_code == 200
    assert upstream.last.path == "/exact"


def test_a_name_is_one_of_each_connection(gateway: Start, upstream: Upstream) -> None:
    """The next connection of a worker has its own."""
    routes = [{"name": n, "paths": ["/"], "snis": [n]} for n in ("a.example", "b.example")]
    services = [{"name": r["name"], "url": upstream.url, "routes": [r]} for r in routes]
    running = gateway({"services": services}, tls="ssl")
    for name, status in [("a.example", 200), ("c.example", 404), ("b.example", 200), (None, 404)]:
        with connect(running.tls_port, name) as wrapped:
            assert f" {status} ".encode() in get(wrapped)[:20], name
