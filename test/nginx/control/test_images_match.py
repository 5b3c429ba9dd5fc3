"""From a request to the route of an image: what nginx makes of host, port, method and headers."""

import pytest

from images_nginx import Images
from wire import Pairs, Wire


def live(nginx: Images, *routes: str) -> None:
    """Publishes routes, Lua tables of their fields, in slots from 1 on."""
    listed = ", ".join(f"w.route({slot}, {fields})" for slot, fields in enumerate(routes, 1))
    nginx.run(f"return w.live(1, {{ {listed} }})")


def slot_of(nginx: Images, path: str = "/", headers: Pairs | None = None) -> int | str:
    """The slot of the request's route, or the word for what came of it."""
    said = nginx.match(path, headers=headers)
    return said["slot"] if said["rc"] == "ok" else said["rc"]


def test_host(images: Images) -> None:
    live(
        images,
        '{ hosts = { "a.example" } }',
        '{ hosts = { "*.example" } }',
        '{ hosts = { "[::1]" } }',
        '{ hosts = { "some.name" } }',
    )
    hosts = {
        "a.example": 1,
        "A.Example:99": 1,
        "b.example": 2,
        "[::1]": 3,
        "[::1]:80": 3,
        "other": "none",
    }
    for host, slot in hosts.items():
        assert slot_of(images, headers=[("Host", host)]) == slot, host
    with images.wire() as wire:
        # Without a Host header it is the server's name.
        wire.send(b"GET / HTTP/1.0\r\n\r\n")
        assert b'"slot":4' in wire.read_reply("GET").body
    with images.wire() as wire:
        wire.send(b"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n")
        assert b'"slot":1' in wire.read_reply("GET").body


def test_port(images: Images) -> None:
    """The Host header's, else the listener's."""
    live(
        images,
        '{ hosts = { "a:81" } }',
        f'{{ hosts = {{ "a:{images.proxy_port}" }} }}',
        '{ hosts = { "a" } }',
        '{ hosts = { "[::1]:81" } }',
    )
    ports = {
        "a:81": 1,
        "a:081": 1,
        "a": 2,
        "a:": 2,
        "a:82": 3,
        f"a:{2**32 + 81}": 3,
        "[::1]:81": 4,
    }
    for host, slot in ports.items():
        assert slot_of(images, headers=[("Host", host)]) == slot, host


def test_port_of_a_unix_socket() -> None:
    more = """
        server {
            listen unix:@socket@;
            location / { content_by_lua_block { require("images_writer").serve() } }
        }
        server {
            listen 127.0.0.1:@other@;
            location / { proxy_set_header Host $http_host; proxy_pass http://unix:@socket@; }
        }
    """
    with Images(more=more) as nginx:
        live(nginx, '{ hosts = { "a:80" } }', '{ hosts = { "a" } }')
        for host, slot in {"a": 2, "a:80": 1}.items():
            with Wire(nginx.other_port) as wire:
                said = wire.ask("/", headers=[("Host", host)])
            assert f'"slot":{slot}' in said.body.decode(), host


def test_method(images: Images) -> None:
    live(images, '{ methods = { "PUT" } }', '{ methods = { "OTHER", "GET" } }')
    with images.wire() as wire:
        for method, said in {
            "PUT": b'"slot":1',
            "GET": b'"slot":2',
            "OTHER": b'"slot":2',
        }.items():
            wire.send(f"{method} / HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert said in wire.read_reply(method).body
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        assert b"none" in wire.read_reply("POST").body


NAMES = ["X-Team", "x-team", "X_Team", "x_TEAM"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_headers_differ_for_the_writer_only(name: str, images: Images) -> None:
    live(
        images,
        '{ headers = { ["X-Team"] = { "Red" } } }',
        '{ headers = { x_team = { "~*^blue[0-9]$" } } }',
    )
    assert slot_of(images, headers=[(name, "rEd")]) == 1
    assert slot_of(images, headers=[(name, "BLUE7")]) == 2
    assert slot_of(images, headers=[(name, "blue")]) == "none"
    # One is not hidden behind others, of whatever spelling.
    assert slot_of(images, headers=[(other, "no") for other in NAMES] + [(name, "red")]) == 1
    assert slot_of(images, headers=[("X-Teams", "red"), ("X-Tea", "red")]) == "none"
    assert slot_of(images, headers=[(name, "")]) == "none"


def test_lines_of_one_header(images: Images) -> None:
    live(images, '{ headers = { ["x-a"] = { "last" } } }', '{ paths = { "/plain" } }')
    for name in ("x-a", "X_A"):
        lines = [(name, "no")] * 30 + [("X-A", "no"), ("x_a", "last")]
        assert slot_of(images, headers=lines) == 1
        assert slot_of(images, headers=[("x-a", "no"), *lines]) == "large"
        assert images.match(headers=[*lines, ("x-a", "no")])["status"] == 400
    # Nobody looks at this one.
    assert slot_of(images, "/plain", headers=[("x-b", "no")] * 40) == 2


def test_more_names_than_are_kept(images: Images) -> None:
    """A request's headers are looked at once a name, for a few names."""
    live(
        images,
        *(f'{{ headers = {{ ["x-{n}"] = {{ "v{n}" }} }} }}' for n in range(10)),
        '{ headers = { ["x-0"] = { "v0" }, ["x-5"] = { "v5" }, ["x-9"] = { "v9" } } }',
    )
    for n in range(10):
        assert slot_of(images, headers=[(f"x-{n}", f"v{n}")]) == n + 1
    assert slot_of(images, headers=[(f"X_{n}", f"v{n}") for n in (9, 5, 0)]) == 11


def test_a_pattern_that_gives_up_is_a_refusal_of_its_route(images: Images) -> None:
    live(images, '{ paths = { "~/(a+)+$" } }', '{ paths = { "/" } }')
    assert slot_of(images, "/aaa") == 1
    said = images.match("/" + "a" * 200 + "!")
    assert (said["status"], said["rc"], said["slot"]) == (500, "limit", 1)
    assert said["reason"] < 0
    assert slot_of(images, "/b") == 2
