"""A gateway that is started as Kong's users start Kong: by KONG_* and kong.conf."""

import base64
import http.client
import json
import signal
import subprocess
from collections.abc import Iterator

import pytest

from certificates import Pair, expired, make, shown
from instance import ONE, SECONDS, TWO, Instance, is_untouched
from upstream import Exchange, Upstream
from wire import Wire, wait_until

SET = ("file", "proxy_listen", "admin_listen", "workers", "worker_connections")
NONE = dict.fromkeys((*SET, "prefix"))
"""No flag of the command says anything."""


def kongs(instance: Instance, **settings: str) -> None:
    """The environment of a small Kong, with these settings beside."""
    given = {
        "prefix": str(instance.prefix),
        "database": "off",
        "proxy_listen": f"127.0.0.1:{instance.proxy_port} reuseport backlog=16384",
        "admin_listen": f"127.0.0.1:{instance.admin_port} reuseport backlog=16384",
        "nginx_worker_processes": "2",
        "nginx_events_worker_connections": "512",
    } | settings
    instance.environment |= {f"KONG_{name.upper()}": value for name, value in given.items()}


def ask(port: int, method: str, path: str, body: str | None = None) -> tuple[int, dict, bytes]:
    """The status, headers and body of a response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    kind = {"Content-Type": "application/yaml"} if body else {}
    connection.request(method, path, body=body, headers=kind)
    response = connection.getresponse()
    answer = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return answer


@pytest.fixture
def one(instance: Instance) -> Iterator[Upstream]:
    """An upstream that the declarative file has a route to."""

    def answer(exchange: Exchange) -> None:
        port = exchange.request.headers.get("X-Forwarded-Port") or ""
        exchange.reply(218, {"X-Forwarded-Port": port})

    with Upstream(answer) as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        yield upstream


def test_an_environment_of_kong_serves(instance: Instance, one: Upstream) -> None:
    log = instance.prefix / "logs" / "seen.log"
    kongs(
        instance,
        declarative_config=str(instance.file),
        log_level="info",
        proxy_access_log="logs/seen.log show",
        nginx_http_log_format="show 'saw $request_method $status id=$kong_request_id'",
        admin_access_log="off",
        headers="via, X-Kong-Upstream-Status",
        headers_upstream="off",
        port_maps=f"80:{instance.proxy_port}",
        nginx_http_client_max_body_size="4",
        upstream_keepalive_idle_timeout="0",
        pg_host="database",
        pg_password="hidden-of-nobody",
    )
    done = instance.run("start", **NONE)
    assert (done.returncode, done.stderr) == (
        0,
        "sluice: warning: environment: KONG_PG_HOST, KONG_PG_PASSWORD: Sluice uses no external "
        "database: the store is in the prefix\n",
    )
    assert len(instance.status()["workers"]["ready"]) == 2
    status, headers, _ = ask(instance.proxy_port, "GET", "/one")
    assert (status, headers["X-Kong-Upstream-Status"]) == (218, "218")
    assert headers["X-Forwarded-Port"] == "80"
    assert "Via" in headers
    assert not {"X-Kong-Request-Id", "X-Kong-Proxy-Latency"} & headers.keys()
    assert "X-Kong-Request-Id" not in one.requests[0].headers
    assert ask(instance.proxy_port, "POST", "/one", "five!")[0] == 413
    wait_until(lambda: "saw GET 218 id=" in log.read_text(), "the line of the request")
    assert not (instance.prefix / "logs" / "admin_access.log").exists()
    for path in instance.prefix.rglob("*"):
        assert not path.is_file() or b"hidden-of-nobody" not in path.read_bytes()
    # A command that comes later knows it without the environment.
    for name in list(instance.environment):
        if name.startswith("KONG_"):
            del instance.environment[name]
    assert "no worker was replaced" in instance.succeed("reload")


def test_flags_and_ours_come_before_kongs(instance: Instance) -> None:
    conf = instance.folder / "kong.conf"
    conf.write_text("# a kong.conf\nheaders = off  # none\nlog_level = warn\nnginx_daemon=on\n")
    kongs(instance, nginx_worker_processes="3", log_level="error")
    instance.environment |= {"SLUICE_WORKERS": "1", "KONG_DECLARATIVE_CONFIG": "absent.yaml"}
    flags = NONE | {"file": str(instance.file), "conf": str(conf)}
    assert instance.run("start", **flags).stderr == ""
    status = instance.status()
    assert (len(status["workers"]["ready"]), status["file"]) == (1, str(instance.file))
    settings = json.loads((instance.prefix / "settings.json").read_text())
    assert (settings["headers"], settings["log_level"]) == ({}, "error")


def test_without_a_database_only_config_writes(instance: Instance, one: Upstream) -> None:
    kongs(instance)
    assert instance.run("start", **NONE).returncode == 0
    port = instance.admin_port
    told = json.loads(ask(port, "GET", "/")[2])
    assert told["configuration"]["database"] == "off"
    status, headers, body = ask(port, "POST", "/services", "url: http://127.0.0.1:9")
    assert (status, json.loads(body)["code"], headers["Allow"]) == (405, 12, "GET, HEAD, OPTIONS")
    assert "POST /config" in json.loads(body)["message"]
    assert ask(port, "POST", "/config?wait=1", ONE.format(url=one.url))[0] == 201
    assert ask(instance.proxy_port, "GET", "/one")[0] == 218
    assert instance.run("restart", "--yes").returncode == 0
    assert ask(instance.proxy_port, "GET", "/one")[0] == 218


def test_a_text_is_the_declarative_file(instance: Instance, one: Upstream) -> None:
    kongs(instance, declarative_config_string=ONE.format(url=one.url))
    assert instance.run("start", **NONE).stderr == ""
    assert ask(instance.proxy_port, "GET", "/one")[0] == 218
    assert instance.status()["file"] == "environment KONG_DECLARATIVE_CONFIG_STRING"
    assert b"_format_version" not in (instance.prefix / "settings.json").read_bytes()
    assert ask(instance.admin_port, "DELETE", "/services/one")[0] == 405
    # Another text is another file; without one, the first stays.
    instance.environment["KONG_DECLARATIVE_CONFIG_STRING"] = TWO.format(url=one.url)
    assert "live on 2 workers" in instance.run("reload").stdout
    assert ask(instance.proxy_port, "GET", "/two")[0] == 218
    del instance.environment["KONG_DECLARATIVE_CONFIG_STRING"]
    assert "no worker was replaced" in instance.succeed("reload")
    instance.environment["KONG_DECLARATIVE_CONFIG_STRING"] = "services: [{nam: a}]"
    done = instance.run("reload")
    assert done.returncode == 1
    assert "file: environment KONG_DECLARATIVE_CONFIG_STRING has" in done.stderr


def test_daemon_off_stays_in_the_foreground(instance: Instance) -> None:
    kongs(
        instance,
        nginx_daemon="off",
        proxy_listen=f"127.0.0.1:{instance.proxy_port}",
        admin_listen=f"127.0.0.1:{instance.admin_port}",
        proxy_access_log="/dev/stdout",
        proxy_error_log="/dev/stderr",
        admin_error_log="/dev/stderr",
        admin_access_log="/dev/stdout",
    )
    instance.environment["KONG_NGINX_DAEMON"] = "on"
    refused = instance.run("start", **NONE).stderr.splitlines()
    assert (
        "sluice: access_log (environment KONG_PROXY_ACCESS_LOG): /dev/stdout needs --foreground; "
        "a daemon has no terminal"
    ) in refused
    instance.environment["KONG_NGINX_DAEMON"] = "off"
    process = subprocess.Popen(
        instance.line("start", **NONE),
        env=instance.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: instance.get("/seen") == 404, "the gateway to answer")
    assert instance.status()["pid"] == process.pid
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "GET /seen" in out
    assert "start worker process" in err


@pytest.fixture
def pairs() -> list[Pair]:
    """Certificates for names that have none."""
    return [make("first.example"), make("second.example")]


def test_the_default_certificate_is_a_file_or_a_text(instance: Instance, pairs: list[Pair]) -> None:
    first, second = pairs
    cert, key = instance.folder / "c.pem", instance.folder / "k.pem"
    cert.write_text(first.cert)
    key.write_text(first.key)
    listen = f"127.0.0.1:{instance.proxy_port} ssl http2"
    kongs(instance, proxy_listen=listen, ssl_cert=str(cert), ssl_cert_key=str(key))
    assert instance.run("start", **NONE).stderr == ""
    assert shown(instance.proxy_port, "any.example") == first.der
    assert "all names: ssl_cert, until" in instance.succeed("status")
    # The files have changed: the workers are others then.
    cert.write_text(second.cert)
    key.write_text(second.key)
    assert instance.run("reload").stdout.startswith("reloaded")
    assert shown(instance.proxy_port, "any.example") == second.der
    instance.environment["KONG_SSL_CERT"] = first.cert
    instance.environment["KONG_SSL_CERT_KEY"] = base64.b64encode(first.key.encode()).decode()
    written = instance.prefix / "tls" / "ssl_cert-1.pem"
    for setting in (f"~ setting ssl_cert: {cert} -> {written}", "~ setting ssl_cert"):
        reloaded = instance.run("reload", "--new-workers").stdout
        assert reloaded.startswith("reloaded")
        # The second time nothing has changed.
        assert (setting in reloaded) == ("->" in setting)
    assert shown(instance.proxy_port, "any.example") == first.der
    for name in ("settings.json", "nginx.conf"):
        assert b"PRIVATE KEY" not in (instance.prefix / name).read_bytes()
    assert (instance.prefix / "tls" / "ssl_cert_key-1.pem").stat().st_mode & 0o777 == 0o600
    # Nothing of a text that is wrong is shown.
    instance.environment["KONG_SSL_CERT"] = first.key
    instance.environment["KONG_SSL_CERT_KEY"] = first.cert
    text = "the text that is given is no"
    assert instance.refuse("reload")[:2] == [
        f"sluice: ssl_cert: {text} certificate in PEM: this is a private key, not a certificate "
        "(are both swapped?)",
        f"sluice: ssl_cert_key: {text} private key in PEM: this is a certificate, not a private "
        "key (are both swapped?)",
    ]
    instance.environment["KONG_SSL_CERT"] = first.cert
    instance.environment["KONG_SSL_CERT_KEY"] = second.key
    assert instance.refuse("reload")[0] == (
        "sluice: ssl_cert_key: key 1 is not that of certificate 1 in ssl_cert"
    )
    instance.environment["KONG_SSL_CERT"] = "-----BEGIN CERTIFICATE----- nothing"
    assert (
        instance.refuse("reload")[0]
        == "sluice: ssl_cert: the text that is given is no certificate in PEM"
    )
    # One that no client takes is served, and told of.
    late = expired(make("ca", is_ca=True))
    instance.environment["KONG_SSL_CERT"] = late.cert
    instance.environment["KONG_SSL_CERT_KEY"] = late.key
    done = instance.run("reload")
    path = instance.prefix / "tls" / "ssl_cert-1.pem"
    line = f"{path}: clients refuse the certificate: it expired on 2024-01-31"
    assert (done.returncode, done.stderr) == (0, f"sluice: warning: ssl_cert: {line}\n")
    # A start without them, whose clients get another certificate, says so.
    instance.succeed("stop")
    for name in ("KONG_SSL_CERT", "KONG_SSL_CERT_KEY"):
        del instance.environment[name]
    kongs(instance, proxy_listen=listen)
    done = instance.run("start", **NONE)
    assert (done.returncode, f"last start: ssl_cert {path} -> (unset)" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("role", "data_plane", "role (environment KONG_ROLE): 'data_plane' is not supported:"),
        (
            "database",
            "postgres",
            "database (environment KONG_DATABASE): 'postgres' needs a cluster",
        ),
        ("stream_listen", "0.0.0.0:9", "stream_listen (environment KONG_STREAM_LISTEN):"),
        ("trusted_ips", "some", "trusted_ips (environment KONG_TRUSTED_IPS): 'some' is not valid"),
    ],
)
def test_what_is_refused_says_why(instance: Instance, name: str, value: str, says: str) -> None:
    kongs(instance, **{name: value})
    (line,) = instance.refuse("start", code=2, **NONE)
    assert line.startswith(f"sluice: {says}")
    assert is_untouched(instance)
    # It keeps nobody from looking.
    assert instance.run("status", **NONE).returncode == 3


def test_a_plugin_that_is_not_there_is_named(instance: Instance) -> None:
    kongs(instance, plugins="bundled, zipkin, mine")
    (line,) = instance.refuse("start", **NONE)
    assert line.startswith("sluice: plugins: zipkin is not here (Planned")
    instance.environment["KONG_PLUGINS"] = "bundled, mine"
    (line,) = instance.refuse("start", **NONE)
    assert line.startswith("sluice: plugins: there is no plugin 'mine'")


def test_a_node_by_itself_in_place_of_a_database(instance: Instance) -> None:
    kongs(instance, database="postgres")
    instance.environment["SLUICE_SINGLE_NODE"] = "on"
    done = instance.run("start", **NONE)
    assert done.stderr == (
        "sluice: warning: database (environment KONG_DATABASE): this node keeps a store of its "
        "own, which no other node sees\n"
    )
    assert ask(instance.admin_port, "POST", "/config?wait=1", ONE.format(url="http://a"))[0] == 201
    assert ask(instance.admin_port, "DELETE", "/services/one")[0] == 400
    assert ask(instance.admin_port, "DELETE", "/routes/one")[0] == 204


def test_a_container_opens_the_admin_listener_with_one_warning(instance: Instance) -> None:
    places = f"0.0.0.0:{instance.admin_port}, [::]:{instance.admin_port}"
    kongs(instance, admin_listen=places)
    done = instance.run("start", **NONE)
    assert (done.returncode, done.stderr) == (
        0,
        "sluice: warning: admin_listen (environment KONG_ADMIN_LISTEN): everybody who can connect "
        f"to {places} can read all keys and replace the configuration; set a token "
        f"(SLUICE_ADMIN_TOKEN, or `{instance.command} token add NAME`)\n",
    )
    for host, status in {"kong:8001": 200, "10.0.0.1": 200, "kong.example": 421}.items():
        with Wire(instance.admin_port) as wire:
            assert wire.ask("/services", headers={"Host": host}).status == status
    instance.environment["SLUICE_ADMIN_TOKEN"] = "correct-horse-battery"
    assert instance.run("reload").stderr == ""
    with Wire(instance.admin_port) as wire:
        assert wire.ask("/services", headers={"Host": "kong"}).status == 401


def test_the_proxy_may_be_off(instance: Instance) -> None:
    kongs(instance, proxy_listen="off")
    assert instance.run("start", **NONE).stderr == ""
    assert ask(instance.admin_port, "GET", "/status")[0] == 200
    assert instance.get("/", instance.proxy_port) == 0
    # nginx's own default for a server without an address is port 80, or 8000.
    assert "server_name sluice;" not in (instance.prefix / "nginx.conf").read_text()
