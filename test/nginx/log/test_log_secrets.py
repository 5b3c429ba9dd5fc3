"""No log has a key, a password or a cookie: each place of a request that can carry one, each way to
write its name, each log."""

import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_plus

import pytest
from admin_client import Client
from log_server import LogServer, logging_to
from secrets_sent import HEADERS, PARAMETERS, Secrets, basic
from seeds import seed_of

from sluice import Gateway, Start, proxying
from upstream import DeadPort, Exchange, Upstream
from wire import Wire, request_bytes, wait_until

TARGETS = (
    *("/?{}", "/?a=1&{}", "/?{}&b=2", "/?a=1&{}&b=2&{}", "/?a&{}", "/?&{}", "/?a=1&&{}"),
    *("/?a=%zz&{}", "/p#{}", "/?a=1#{}", "/p;{}", "/p;a=1;{}?b=2", "/p&{}"),
)

# Behind a secret, all of it still the value: `"` ends quoted texts in logs.
TAILS = ("", "/x", "%26b", '"q', "#f", "?c=3", ";d", "+e", "=f", "@g", "%20HTTP/")


# In the order of nginx's documentation; each may hold something of a request's secrets.
EVERYTHING = (
    "$request|$request_uri|${request_uri}|$args|$query_string|$http_referer|${http_referer}|"
    "$http_authorization|$HTTP_Authorization|$http_proxy_authorization|$http_cookie|$http_apikey|"
    "$http_x_token|$http_kong_admin_token|$arg_apikey|$arg_x_token|$cookie_session|$remote_user|$request_body|"
    "$sent_http_set_cookie|$sent_http_location|$sent_http_content_location|$upstream_http_set_cookie|$upstream_http_location|"
    "$upstream_cookie_session|$sluice_uri|$sluice_request_path|$uri|$document_uri|"
    "$request_filename|$status"
)

FORMATS = {"combined": "combined", "json": "json", "all": EVERYTHING}


def guarded(upstream: Upstream, dead: DeadPort, log: LogServer, hide: bool) -> dict[str, Any]:
    """A route that answers, one whose upstream is away, both behind keys, and entries of all."""
    config = logging_to(upstream, log.port)
    away = {"name": "away", "url": f"http://{dead.address}", "retries": 0}
    config["services"].append(away | {"routes": [{"name": "away", "paths": ["/away"]}]})
    key_auth = {
        "key_names": ["apikey", "x_token"],
        "key_in_body": True,
        "hide_credentials": hide,
        "anonymous": "nobody",
    }
    config["plugins"].append({"name": "key-auth", "config": key_auth})
    config["consumers"] = [{"username": "nobody"}]
    return config


def leaky(secrets: Secrets) -> Callable[[Exchange], None]:
    """An upstream that answers with secrets of its own."""

    def handle(exchange: Exchange) -> None:
        exchange.read_body()
        headers = {
            "Set-Cookie": f"session={secrets.new('Set-Cookie')}; Path=/",
            "Location": f"http://a.example/cb?b=2&apikey={secrets.new('Location')}",
            "Content-Location": f"/cb#apikey={secrets.new('Content-Location')}",
            "Apikey": secrets.new("the answer's apikey"),
        }
        exchange.reply(302, headers, b"moved")

    return handle


def plant_in_queries(running: Gateway, secrets: Secrets) -> None:
    """Every spelling, in every place of a query."""
    with running.wire() as wire:
        for name in PARAMETERS:
            for target in TARGETS:
                secret = f"{name}={secrets.new(f'{target} {name}')}"
                assert wire.ask(target.replace("{}", secret)).status == 302
            for tail in TAILS:
                secret = secrets.new(f"query with {tail}")
                wire.ask(f"/?a=1&{name}={tail}{secret}{tail}&b=2")
            secret = secrets.new(f"referer {name}")
            wire.ask("/?b=2", headers={"Referer": f"http://a.example/p?{name}={secret}&b=2"})
            secret = secrets.new(f"absolute {name}")
            wire.ask(f"http://a.example/p?{name}={secret}&b=2")


def plant_in_headers_and_bodies(running: Gateway, secrets: Secrets) -> None:
    """Every header, every kind of body."""
    form = "application/x-www-form-urlencoded"
    with running.wire() as wire:
        for name in HEADERS:
            wire.ask("/?b=2", headers={name: secrets.new(f"header {name}")})
            twice = [(name, secrets.new(f"first {name}")), (name, secrets.new(f"second {name}"))]
            if name.lower() not in ("authorization",):
                wire.ask("/?b=2", headers=[("Host", "a"), *twice])
        for make in (basic, "Bearer {}".format, "session={}; a=b".format):
            for name in ("Authorization", "Proxy-Authorization", "Cookie"):
                wire.ask("/?b=2", headers={name: make(secrets.new(f"{name} as {make}"))})
        for kind, text in ((form, "a=1&apikey={}"), ("application/json", '{{"x_token": "{}"}}')):
            body = text.format(secrets.new(f"body {kind}")).encode()
            wire.ask("/?b=2", "POST", {"Content-Type": kind}, body)


def plant_in_refused_requests(running: Gateway, secrets: Secrets) -> None:
    """What nginx refuses before it has read all of it; its lines have the level info."""
    lines = (
        "GET http://user:{}@a.example/?b=2 HTTP/1.1",
        "GET http://{}@a.example/?b=2 HTTP/1.1",
        "CONNECT user:{}@a.example:443 HTTP/1.1",
        "GET /?b=2&apikey={} and more HTTP/1.1",
        "GET /?b=2&apikey={} HTTP/9.9",
        "G@T /?b=2&apikey={} HTTP/1.1",
        "GET /?b=2&x%5ftoken={}\x01 HTTP/1.1",
        "GET /../..?b=2&apikey={} HTTP/1.1",
        "GET /?b=2&apikey={}",
    )
    for line in lines:
        with running.wire() as wire:
            wire.send(line.format(secrets.new(line)).encode() + b"\r\nHost: a\r\n\r\n")
            assert wire.read_to_end()
    for header in ("apikey: {}", "Authorization: Bearer {}", "api key: {}", "Cookie: a={}"):
        for filling in ("", "x" * 40000):
            with running.wire() as wire:
                value = header.format(secrets.new(f"refused {header} {len(filling)}")) + filling
                wire.send(f"GET /?b=2 HTTP/1.1\r\nHost: a\x01\r\n{value}\r\n\r\n".encode())
                wire.read_to_end()


def plant_in_misread_bodies(running: Gateway, secrets: Secrets) -> None:
    """Bodies of requests that say too little of their length, or nothing: what is behind is taken
    for the next request. Their lines are no requests, and all of them may be a key."""
    bodies = (
        *('{{"apikey": "{}", "b": 2}}', '{{ "a": {{}}, "k": "{}"}}', '["{}"]', '"{}"'),
        *("apikey={}", "a=1&x%5ftoken={}&b=2", "b=2;{}", "apikey: {}", "<apikey>{}</apikey>"),
        *("{}", " {}", "APIKEY {}", "APIKEY  {} HTTP/1.1", "KEY-{} /", "K\u00e9Y /{}", "A ?{}"),
        *('x", host: "{}", "y": "{}"', ', request: "GET /?{}"', "SECRET *{}", "GET http:{}"),
    )
    for body, length in itertools.product(bodies, ("", "Content-Length: 0", "Content-Length: 2")):
        filling = b"b=" if length.endswith("2") else b""
        secret = secrets.new(f"body {body} {length}")
        misread = body.replace("{}", secret).replace("{{", "{").replace("}}", "}").encode()
        with running.wire() as wire:
            head = f"GET /?b=2 HTTP/1.1\r\nHost: a\r\n{length or 'X: y'}\r\n\r\n"
            wire.send(head.encode() + filling + misread + b"\r\n\r\n")
            assert wire.read_head().status == 302
            assert b" 400 Bad Request" in wire.read_to_end()


def plant_in_misread_headers(running: Gateway, secrets: Secrets) -> None:
    """Bodies behind a head without an end: their lines are taken for headers."""
    bodies = (
        *('{{"apikey": "{}"}}', '{{"a": 1, "k" :"{}"}}', '{{"a": "b", "c": "d" , "k": "{}"}}'),
        *('"k": "{}"', '<a x="1">{}</a>', 'a"b" k:{}', "k=1; {}", "{}", "\u00e9: {}", "[k]: {}"),
        *('Cookie\x01: a="b", c={}', 'Cookie: a="b" ; c={}\x00', '{{"k": "{}", "a": "b", \x01'),
    )
    for body in bodies:
        secret = secrets.new(f"header {body}")
        misread = body.replace("{}", secret).replace("{{", "{").replace("}}", "}").encode()
        with running.wire() as wire:
            # No Host: it is refused, whatever nginx makes of the line.
            wire.send(b"GET /?b=2 HTTP/1.1\r\n" + misread + b"\r\n\r\n")
            assert b" 400 Bad Request" in wire.read_to_end()


def plant_in_failures(running: Gateway, secrets: Secrets) -> int:
    """An upstream that is away: nginx prints request, upstream and referrer. How many there are."""
    count = 0
    with running.wire() as wire:
        for name, tail in itertools.product(PARAMETERS, TAILS):
            secret, other = secrets.new(f"failed {name} {tail}"), secrets.new(f"referrer {name}")
            target = f"/away?b=2&{name}={tail}{secret}{tail}"
            referer = f"http://user:{other}@a.example/?{name}={tail}{other}{tail}"
            assert wire.ask(target, headers={"Referer": referer}).status == 502
            count += 1
    return count


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_no_log_has_a_secret(
    gateway: Start, upstream: Upstream, log: LogServer, form: str, hide: bool
) -> None:
    secrets = Secrets()
    upstream.handler = leaky(secrets)
    with DeadPort() as dead:
        running = gateway(
            guarded(upstream, dead, log, hide),
            access_log_format=FORMATS[form],
            log_level="info",
        )
        failures = len(PARAMETERS) * len(TAILS)
        running.expect_log(r"connect\(\) failed", failures)
        plant_in_queries(running, secrets)
        plant_in_headers_and_bodies(running, secrets)
        plant_in_refused_requests(running, secrets)
        plant_in_misread_bodies(running, secrets)
        plant_in_misread_headers(running, secrets)
        assert plant_in_failures(running, secrets) == failures
        running.ask("/?n=last&b=2")
    wait_until(lambda: "n=last" in running.access_log(), "the last line of the access log")
    wait_until(
        lambda: any(e["request"]["querystring"].get("n") == "last" for e in log.entries),
        "the last entry",
    )

    assert not secrets.found(running.access_log())
    assert not secrets.found(running.error_log())
    assert not secrets.found(json.dumps(log.entries))
    # Whose line it is is there as well.
    lines = [line for line in running.error_log().splitlines() if "invalid header line" in line]
    assert lines
    assert all(re.search(r'" while .+, client: 127\.0\.0\.1, server: ', line) for line in lines)
    # What is no secret is there, and it shows that something was.
    for text in (running.access_log(), running.error_log(), json.dumps(log.entries)):
        assert "b=2" in text
        assert "apikey=REDACTED" in text
    failed = [line for line in running.error_log().splitlines() if "connect() failed" in line]
    assert len(failed) == failures
    for line in failed:
        assert re.search(r'request: "GET /away\?b=2&\S+=REDACTED HTTP/1.1", upstream: "http', line)
        # nginx cuts a fragment off, and with it a key that begins with one.
        assert hide or re.search(r'=(REDACTED)?", host: "', line)
        referrer = r'referrer: "http://REDACTED@a.example/\?\S+=REDACTED", request_id: "\w{32}"$'
        assert re.search(referrer, line)


PIECES = (
    *"?&;#=/@:+%k1",
    *("//", "&apikey=", "?%61pikey=", ";X_TOKEN=", "apikey", "x_token=", "%3d", "%26", "%6"),
)
PARAMETER = re.compile(r"[?&;#]([^=&?;#]*)=([^&]+)")
USERINFO = re.compile(r"//([^/?#]+)@")


def plainly_redacted(text: str) -> str:
    """What a log is to have of a URI, found letter by letter."""
    out, at = "", 0
    while at < len(text):
        parameter, userinfo = PARAMETER.match(text, at), USERINFO.match(text, at)
        if parameter and unquote_plus(parameter[1], "latin-1").lower() in ("apikey", "x_token"):
            out += text[at : parameter.start(2)] + "REDACTED"
            at = parameter.end()
        elif userinfo:
            out += "//REDACTED"
            at = userinfo.end(1)
        else:
            # Two slashes go together, so a third begins nothing.
            step = 2 if text.startswith("//", at) else 1
            out += text[at : at + step]
            at += step
    return out


def test_any_uri_is_redacted_as_it_would_be_letter_by_letter(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    upstream.answer(200)
    with DeadPort() as dead:
        config = guarded(upstream, dead, log, hide=False)
        running = gateway(config, access_log_format="$request_uri")
    seed = seed_of("log_secrets")
    print(f"SEED={seed}")
    chosen = random.Random(seed)
    targets = [
        "/p?" + "".join(chosen.choices(PIECES, k=chosen.randrange(2, 14))) for _ in range(1500)
    ]
    with running.wire() as wire:
        for target in targets:
            assert wire.ask(target).status == 200
    wait_until(lambda: running.access_log().count("\n") == len(targets), "the lines")
    logged = running.access_log().splitlines()
    assert logged == [plainly_redacted(target) for target in targets]
    assert sum("REDACTED" in line for line in logged) > 100
    wait_until(lambda: len(log.entries) == len(targets), "the entries")


def test_a_header_without_a_secret_is_logged(gateway: Start, upstream: Upstream) -> None:
    form = "$request|$args|$http_referer|$http_x_other|$http_user_agent|$arg_other|$http_cookie|"
    running = gateway(proxying(upstream), access_log_format=form)
    headers = {"Referer": "http://a/?c=%20&d", "X-Other": "o;p?q=1&r", "User-Agent": 'u"v'}
    running.ask("/p;x=1?n=1&apikeys=2&my_apikey=3&apikey&other=x", headers=headers)
    wait_until(lambda: running.access_log().endswith("\n"), "the line")
    assert running.access_log() == (
        "GET /p;x=1?n=1&apikeys=2&my_apikey=3&apikey&other=x HTTP/1.1"
        "|n=1&apikeys=2&my_apikey=3&apikey&other=x|http://a/?c=%20&d|o;p?q=1&r|u\\x22v|x|-|\n"
    )


def test_names_are_known_after_a_change(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    secrets = Secrets()
    running = gateway(logging_to(upstream, log.port))

    def ask(mark: str) -> None:
        running.ask(f"/?n={mark}&late_key={secrets.new(mark)}")
        log.wait_for_marks({mark})

    ask("before")
    assert secrets.found(json.dumps(log.entries)) == ["before"]
    config = logging_to(upstream, log.port)
    config["plugins"].append(
        {"name": "key-auth", "config": {"key_names": ["late_key"], "anonymous": "nobody"}}
    )
    config["consumers"] = [{"username": "nobody"}]
    running.reload(config)
    ask("after")
    # Requests that began under the old configuration are logged under the new one.
    running.reload(logging_to(upstream, log.port))
    assert secrets.found(json.dumps(log.entries)) == ["before"]


def test_a_worker_knows_the_names_with_its_first_line(gateway: Start, upstream: Upstream) -> None:
    """Before any request has met the plugin: after a change, in new workers, after a start."""
    secrets = Secrets()
    running = gateway(None, log_level="info")
    admin = Client(running)

    def ask(mark: str, *names: str) -> None:
        for name in names:
            running.ask(f"/elsewhere?{name}={secrets.new(f'{mark} {name}')}")
            with running.wire() as wire:
                target = f"/\x01?{name}={secrets.new(f'{mark} {name} bad')}"
                wire.send(request_bytes(target))
                wire.read_to_end()
        running.ask(f"/elsewhere?mark={mark}")
        wait_until(lambda: f"mark={mark}" in running.access_log(), "the last line")
        assert not secrets.found(running.access_log() + running.error_log())

    plugin = {"name": "key-auth", "instance_name": "p", "config": {"key_names": ["first-key"]}}
    route = {"name": "keyed", "paths": ["/keyed"], "plugins": [plugin]}
    service = {"name": "s", "url": upstream.url, "routes": [route]}
    admin.must(201, "POST", "/config", {"_format_version": "3.0", "services": [service]})
    ask("file", "first_key")
    names = {"config": {"key_names": ["first-key", "second"]}}
    admin.must(200, "PATCH", "/plugins/p", names)
    ask("change", "FIRST-KEY", "second")
    assert running.command("reload", "--new-workers").returncode == 0
    ask("reload", "first-key", "second")
    running.stop()
    running.start()
    ask("start", "first-key", "second")


def spellings(text: str) -> Iterator[str]:
    """The text, and each way to write one of its letters in another way."""
    yield text
    for i, letter in enumerate(text):
        yield f"{text[:i]}%{ord(letter):02x}{text[i + 1 :]}"
        yield f"{text[:i]}%{ord(letter):02X}{text[i + 1 :]}"


@pytest.mark.parametrize("form", ["combined", "json", EVERYTHING])
def test_the_admin_listener_logs_no_key(gateway: Start, upstream: Upstream, form: str) -> None:
    secrets = Secrets()
    keys = [secrets.new("key"), secrets.new("other key")]
    config = proxying(upstream)
    config["consumers"] = [{"username": "ann", "keyauth_credentials": [{"key": k} for k in keys]}]
    running = gateway(config, access_log_format=form)
    with Wire(running.admin_port) as wire:
        for key in keys:
            for path in (f"/key-auths/{key}", f"/consumers/ann/key-auth/{key}"):
                assert wire.ask(path).json()["key"] == key
        folders = (*spellings("key-auths"), "/key-auths", "a/../key-auths")
        paths = [f"/{folder}/{keys[0]}" for folder in folders]
        paths += [f"/{folder}/ann/key-auth/{keys[0]}" for folder in spellings("consumers")]
        paths += [f"/consumers/ann/{folder}/{keys[0]}" for folder in spellings("key-auth")]
        found = [wire.ask(path).status for path in paths]
    # What goes another way is nowhere, but its key may be right.
    assert found.count(404) == 2
    assert found.count(200) == len(paths) - 2
    log = running.settings["prefix"] / "logs" / "admin_access.log"
    wait_until(lambda: log.read_text().count("\n") == 2 * len(keys) + len(paths), "the lines")
    assert not secrets.found(log.read_text())
    assert "/key-auths/REDACTED" in log.read_text()
    assert "/consumers/ann/key-auth/REDACTED" in log.read_text()
