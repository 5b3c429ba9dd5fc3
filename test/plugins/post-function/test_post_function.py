"""post-function: what pre-function does (test_pre_function.py), behind all other plugins."""

from admin_client import Client
from functions import entity, running

from sluice import Start
from upstream import Upstream


def test_it_runs_behind_all_others(gateway: Start, upstream: Upstream) -> None:
    """And pre-function before them; each has a table of its own in kong.ctx.plugin."""
    config = running(
        upstream,
        entity(
            "post-function",
            "kong.ctx.plugin.who = 'post' "
            "kong.service.request.set_header('X-Who', kong.client.get_consumer().username)",
            log="kong.log.notice(kong.ctx.plugin.who, ' is last')",
        ),
        entity(
            "pre-function",
            "kong.ctx.plugin.who = 'pre' assert(not kong.client.get_consumer())",
            log="kong.log.notice(kong.ctx.plugin.who, ' is first')",
        ),
        {"name": "key-auth"},
    )
    config["consumers"] = [{"username": "ann", "keyauth_credentials": [{"key": "k"}]}]
    started = gateway(config)
    started.expect_log(r"\[post-function\] post is last", 1)
    started.expect_log(r"\[pre-function\] pre is first", range(1, 3))
    assert started.ask("/", headers={"apikey": "k"}).status == 200
    assert upstream.last.headers.get("X-Who") == "ann"
    assert started.ask("/").status == 401


def test_what_does_not_compile_is_refused_in_its_name(gateway: Start) -> None:
    reply = Client(gateway(None)).ask("POST", "/plugins", entity("post-function", "print("))
    assert reply.status == 400
    words = "error parsing post-function: [string \"print(\"]:1: unexpected symbol near '<eof>'"
    assert reply.json()["fields"]["config"]["access"] == [words]
