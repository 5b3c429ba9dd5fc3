"""Dot segments that only an upstream would see: refused in every spelling; others go on."""

import itertools
import re
from collections.abc import Iterator

import pytest

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import ClosedEarly, Wire


def again(text: str, times: int) -> str:
    """What is encoded, encoded once more, and so on."""
    for _ in range(times):
        text = text.replace("%", "%25")
    return text


# What some server or other takes for the end of a segment, and ways to write a dot. The first are
# plain: nginx and the gateway know them for what they are.
ODD = [
    "\\",
    ";",
    "#",
    *(again(code, times) for code in ("%2f", "%5c", "%3b", "%23") for times in (0, 1, 2, 3)),
    "%2F",
    "%5C",
    "%3B",
    "%252F",
    "%25%32%66",
    "%c0%af",
    "%C0%AF",
    "%c1%9c",
    "%e0%80%af",
    "%f0%80%80%af",
    "%25c0%25af",
]
PLAIN_DOTS = [".", "%2e", "%2E"]
ODD_DOTS = ["%252e", "%25252e", "%252E", "%25%32%65", "%c0%ae", "%e0%80%ae", "%25c0%25ae"]
DOTS = [*PLAIN_DOTS, *ODD_DOTS]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


def public(upstream: Upstream, **route: object) -> dict:
    """A service below /base, reached by /public."""
    return proxying(f"{upstream.url}/base", paths=["/public"], **route)


@pytest.fixture(scope="module")
def running(upstream: Upstream) -> Iterator[Gateway]:
    with Gateway(public(upstream)) as gateway:
        yield gateway


class Asker:
    """Asks on one connection as long as it lasts; a 400 ends it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.wire: Wire | None = None

    def status(self, target: str) -> int:
        self.wire = self.wire or self.gateway.wire()
        try:
            reply = self.wire.ask(target)
        except ClosedEarly:
            self.wire.close()
            self.wire = self.gateway.wire()
            reply = self.wire.ask(target)
        if reply.headers.get("connection") == "close":
            self.wire.close()
            self.wire = None
        return reply.status


def segments() -> list[str]:
    """Dot segments in all spellings of one and two dots."""
    return [*DOTS, *(a + b for a, b in itertools.product(DOTS, DOTS))]


@pytest.mark.parametrize("separator", ODD)
def test_a_dot_segment_beside_an_odd_separator(
    running: Gateway, upstream: Upstream, separator: str
) -> None:
    """Behind it, before it, between two; in the middle and at the end of the path."""
    before = len(upstream.requests)
    asker = Asker(running)
    for dots in segments():
        for path in (
            f"/public/a/{dots}{separator}private/x",
            f"/public/a{separator}{dots}/private/x",
            f"/public/a{separator}{dots}{separator}private/x",
            f"/public/a/b/{dots}{separator}",
            f"/public/a/b/{dots}{separator}x=1;y/private",
            f"/public/a/b{separator}{dots}",
            f"/public/a/b{separator}{dots}?q=/../",
        ):
            assert asker.status(path) == 400, path
    assert len(upstream.requests) == before


@pytest.mark.parametrize("dot", ODD_DOTS)
def test_dots_that_are_encoded_more_than_once(
    running: Gateway, upstream: Upstream, dot: str
) -> None:
    before = len(upstream.requests)
    asker = Asker(running)
    for other in DOTS:
        for dots in (dot, dot + other, other + dot):
            for path in (f"/public/{dots}/private/x", f"/public/x/{dots}", f"/public/{dots}?x"):
                assert asker.status(path) == 400, path
    assert len(upstream.requests) == before


@pytest.mark.parametrize("handling", ["v0", "v1"])
def test_a_dot_segment_that_a_prefix_cuts_free(
    gateway: Start, upstream: Upstream, handling: str
) -> None:
    """`/public` also matches `/public..`, of which the strip leaves the dots."""
    config = public(upstream, path_handling=handling)
    config["services"][0]["url"] += "/"
    config["services"][0]["routes"][0]["paths"] += ["~/v\\d+", "/slash/"]
    running = gateway(config)
    asker = Asker(running)
    for dots, separator in itertools.product(segments(), ODD):
        for prefix in ("/public", "/v1", "/slash/x/../"):
            path = f"{prefix}{dots}{separator}private/x"
            before = len(upstream.requests)
            status = asker.status(path)
            assert status == (200 if len(upstream.requests) > before else 400), path
            if status == 200:
                assert resolve(upstream.last.path).startswith("/base"), path
    for rest, seen in (("..x%2fy", "..x%2Fy"), ("...%2fy", "...%2Fy"), ("../y", "y"), ("/y", "y")):
        assert running.ask("/public" + rest).status == 200
        assert upstream.last.target == "/base/" + seen, rest


def test_what_the_gateway_removes_itself(running: Gateway, upstream: Upstream) -> None:
    """Between slashes, encoded at most once."""
    for first, second in itertools.product(["", *PLAIN_DOTS], PLAIN_DOTS):
        for path, seen in (
            (f"/{'x/' if first else ''}{first}{second}/public/y", "/base/y"),
            (f"/public/a/{first}{second}/y", "/base/y" if first else "/base/a/y"),
            (f"/public/a/b/{first}{second}", "/base/a/" if first else "/base/a/b/"),
        ):
            assert running.ask(path).status == 200, path
            assert upstream.last.target == seen, path


HARMLESS = [
    "/public/a%2fb",
    "/public/a%2Fb%5Cc",
    "/public/a;v=1/b;w=2",
    "/public/a;v=../b",
    "/public/a;v=..",
    "/public/a\\b",
    "/public/a%252fb",
    "/public/%2541",
    "/public/100%25",
    "/public/...%2fx",
    "/public/...;/x",
    "/public/..a;/x",
    "/public/a..%2fx",
    "/public/a.;/x",
    "/public/.well-known;v/x",
    "/public/a%2f.hidden",
    "/public/a%2f..hidden",
    "/public/%c3%a9;/x",
    "/public/%e2%82%ac%2fx",
    "/public/%f0%9f%98%80;x",
    "/public/a?x=/..%2f",
    "/public/a?x=..;/",
    "/public/a%3b",
    "/public/;",
    "/public/%2f",
]


@pytest.mark.parametrize("switch", [True, False])
def test_what_is_no_traversal_goes_on(gateway: Start, upstream: Upstream, switch: bool) -> None:
    running = gateway(public(upstream), reject_encoded_climbs=switch)
    for path in HARMLESS:
        assert running.ask(path).status == 200, path
        seen = upstream.last.target.replace("%5C", "\\").replace("%5c", "\\")
        wanted = path.replace("/public", "/base", 1)
        assert seen.lower() == wanted.replace("%5C", "\\").lower(), path


def resolve(path: str) -> str:
    """As the most forgiving of upstreams would."""
    for _ in range(6):
        path = re.sub("%([0-9a-fA-F]{2})", lambda m: chr(int(m.group(1), 16)), path)
    path = re.sub("\xc0\xaf|\xe0\x80\xaf|\xf0\x80\x80\xaf|\xc1\x9c|\\\\", "/", path)
    path = re.sub("\xc0\xae|\xe0\x80\xae", ".", path)
    path = re.sub("#.*", "", path)
    out: list[str] = []
    for part in path.split("/"):
        name = part.partition(";")[0]
        if name == "..":
            if not out:
                return "above the root"
            out.pop()
        elif name not in (".", ""):
            out.append(name)
    return "/" + "/".join(out)


@pytest.mark.parametrize("handling", ["v0", "v1"])
@pytest.mark.parametrize("strip", [True, False])
def test_no_spelling_leaves_the_services_path(
    gateway: Start, upstream: Upstream, strip: bool, handling: str
) -> None:
    """Switched off, what climbs within the service's path goes on, and no more than that."""
    config = public(upstream, strip_path=strip, path_handling=handling)
    config["services"][0]["routes"][0]["paths"] += ["/", "/public/", "~/v\\d+"]
    running = gateway(config, reject_encoded_climbs=False)
    asker = Asker(running)
    passed = 0
    for dots, separator in itertools.product([".", "..", "%2e.", "%252e%252e", "%c0%ae."], ODD):
        for path in (
            f"/public/{dots}{separator}x",
            f"/public/a/{dots}{separator}x",
            f"/public/a/{dots}{separator}{dots}{separator}x",
            f"/public/a/{dots}{separator}{dots}{separator}{dots}{separator}x",
            f"/public{separator}{dots}{separator}x",
            f"/public{dots}{separator}x",
            f"/v1{dots}{separator}{dots}{separator}x",
            f"/public/a{separator}{dots}",
            f"/public/;a/{dots}{separator}x",
            f"/public/%3ba%2f{dots}{separator}x",
            f"/{dots}{separator}x",
        ):
            before = len(upstream.requests)
            status = asker.status(path)
            assert status in (200, 400), path
            assert (status == 200) == (len(upstream.requests) > before), path
            if status == 200:
                passed += 1
                assert resolve(upstream.last.path).startswith("/base"), (path, upstream.last.path)
    assert passed > 100


def test_the_setting_passes_them_on(gateway: Start, upstream: Upstream) -> None:
    running = gateway(public(upstream), reject_encoded_climbs=False)
    for path, seen in (
        ("/public/a/..%2fx", "/base/a/..%2Fx"),
        ("/public/a/..;/x", "/base/a/..;/x"),
        ("/public/a/b%2f..", "/base/a/b%2F.."),
    ):
        assert running.ask(path).status == 200, path
        assert upstream.last.target == seen
    plain = gateway(proxying(upstream, strip_path=False), reject_encoded_climbs=False)
    assert plain.ask("/public/..%2fprivate").status == 200
    assert upstream.last.target == "/public/..%2Fprivate"
