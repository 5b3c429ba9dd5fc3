"""What plugins in Lua read of a token that jwt has taken: kong.ctx.shared, as in Kong."""

from typing import Any

import jwt
import pytest
from functions import entity, running

from sluice import Start
from upstream import Upstream

SECRET = "a secret of some length, as HS256 asks for one"

TELLS = """
local token = kong.ctx.shared.authenticated_jwt_token
kong.service.request.set_header("X-Token", type(token) .. " " .. tostring(token))
"""
SAYS = "kong.ctx.shared.authenticated_jwt_token = 'another'"


def token(key: str = "alice") -> str:
    """A token; alice's is right."""
    return jwt.encode({"iss": key}, SECRET, "HS256")


def config(upstream: Upstream, *plugins: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One route behind jwt and others."""
    consumers = [
        {"username": "alice", "jwt_secrets": [{"key": "alice", "secret": SECRET}]},
        {"username": "ghost"},
    ]
    found = running(upstream, {"name": "jwt", "config": fields}, *plugins)
    return found | {"consumers": consumers}


@pytest.mark.parametrize("place", ["header", "query", "cookie"])
def test_the_token_is_there_for_all_that_runs_behind(
    serving: Start, upstream: Upstream, place: str
) -> None:
    late = "kong.log.notice('late: ', kong.ctx.shared.authenticated_jwt_token)"
    plugins = [entity("post-function", TELLS, log=late), entity("pre-function", SAYS)]
    started = serving(config(upstream, *plugins, cookie_names=["c"]))
    for text in (token(), token()):  # parsed, and remembered
        headers = {"Authorization": f"Bearer {text}"} if place == "header" else {}
        headers |= {"Cookie": f"a=b; c={text}"} if place == "cookie" else {}
        # a query is decoded
        path = f"/?jwt={text.replace('.', '%2e')}" if place == "query" else "/"
        assert started.ask(path, headers=headers).status == 200
        assert upstream.last.headers.get("X-Token") == f"string {text}"
    started.expect_log(f"late: {token()}", 2)


def test_a_request_of_the_anonymous_consumer_has_none(serving: Start, upstream: Upstream) -> None:
    """Nor what another plugin has said before."""
    plugins = [entity("post-function", TELLS), entity("pre-function", SAYS)]
    started = serving(config(upstream, *plugins, anonymous="ghost"))
    for text in ("", token("bob"), token()[:-2]):
        reply = started.ask("/", headers={"Authorization": f"Bearer {text}"} if text else {})
        assert reply.status == 200
        assert upstream.last.headers.get("X-Token") == "nil nil"
    assert started.ask("/", headers={"Authorization": f"Bearer {token()}"}).status == 200
    assert upstream.last.headers.get("X-Token") == f"string {token()}"


def test_a_plugin_behind_may_say_another(serving: Start, upstream: Upstream) -> None:
    """What it says stays: the token is told once."""
    says = "local before = kong.ctx.shared.authenticated_jwt_token " + SAYS
    started = serving(config(upstream, entity("post-function", says + TELLS)))
    assert started.ask("/", headers={"Authorization": f"Bearer {token()}"}).status == 200
    assert upstream.last.headers.get("X-Token") == "string another"


def test_a_preflight_and_no_jwt_leave_what_was_said(serving: Start, upstream: Upstream) -> None:
    plugins = [entity("post-function", TELLS), entity("pre-function", SAYS)]
    started = serving(config(upstream, *plugins, run_on_preflight=False))
    assert started.ask("/", "OPTIONS").status == 200
    assert upstream.last.headers.get("X-Token") == "string another"
