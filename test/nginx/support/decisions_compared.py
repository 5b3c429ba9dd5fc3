"""What nginx has done of a request, and what the judge says that it does, in one form."""

from typing import Any

from decisions_words import CUSTOM_IDS, IDS, LIES, Case, Heads, Seen

Answer = dict[str, Any]

# Of the upstream's answer; plugins replace some.
UPSTREAM_HEADERS = [
    ("Content-Type", "text/up"),
    ("Vary", "Accept"),
    ("Access-Control-Allow-Origin", "up"),
    ("Access-Control-Expose-Headers", "up"),
    ("X-Close", "up"),
    ("X-RateLimit-Limit-Day", "up"),
    ("X-Other", "up"),
]

IDENTITY = [
    "x-consumer-id",
    "x-consumer-custom-id",
    "x-consumer-username",
    "x-credential-identifier",
    "x-anonymous-consumer",
]

# What is the gateway's own, whatever plugins decide.
OF_REQUEST = {"host", "connection", "via", "expect", "content-length", "transfer-encoding"}
OF_RESPONSE = {"date", "server", "connection", "via", "content-length", "transfer-encoding"}


def _is_own(name: str) -> bool:
    return name.startswith(("x-forwarded-", "x-real-ip", "x-kong-"))


def _lowered(pairs: Heads, own: set[str]) -> Heads:
    lowered = [(name.lower(), value) for name, value in pairs]
    return [pair for pair in lowered if pair[0] not in own and not _is_own(pair[0])]


def _without(headers: Heads, name: str) -> Heads:
    return [pair for pair in headers if pair[0] != name.lower()]


def _alike(name: str) -> str:
    return name.lower().replace("_", "-")


def found_of(seen: Seen, is_plain: bool, entry: dict[str, Any]) -> dict[str, Any]:
    """What nginx has done."""
    reply, request = seen.reply, seen.request
    found: dict[str, Any] = {
        "status": reply.status,
        "headers": sorted(_lowered(list(reply.headers), OF_RESPONSE)),
        "logged": entry.get("correlation_id"),
        "decision": "pass" if request else "respond",
    }
    if request:
        assert reply.headers.get("X-Kong-Upstream-Latency") is not None
        found["query"] = request.target.partition("?")[2]
        found["upstream"] = sorted(_lowered(list(request.headers), OF_REQUEST))
        found["body"] = request.body
        return found
    found["message"] = reply.body.decode() if is_plain else reply.json()["message"]
    if not is_plain:
        found["headers"] = _without(found["headers"], "content-type")
    return found


def wanted_of(case: Case, answer: Answer) -> dict[str, Any]:
    """What the judge says."""
    decision, bound = answer["decision"], answer.get("bound")
    status, message, kind = answer["status"], answer.get("message"), answer.get("type")
    if decision == "pass" and bound is not None and len(case.body or b"") > bound:
        decision, status, kind = "respond", answer["bound_status"], None
        message = answer["bound_message"]
    wanted: dict[str, Any] = {
        "status": 200 if decision == "pass" else status,
        "logged": answer.get("logged"),
        "decision": decision,
    }
    if decision == "pass":
        wanted["headers"] = sorted(_response(answer, _lowered(UPSTREAM_HEADERS, OF_RESPONSE)))
        wanted["query"] = answer.get("query", case.query)
        wanted["upstream"] = sorted(_request(case, answer))
        wanted["body"] = (case.body or b"") if "body" not in answer else answer["body"].encode()
        return wanted
    wanted["headers"] = sorted(_response(answer, [("content-type", kind)] if kind else []))
    wanted["message"] = message or ""
    return wanted


def _response(answer: Answer, headers: Heads) -> Heads:
    """What the client sees of these headers."""
    challenge = answer.get("challenge")
    if challenge is not None:
        headers = [*headers, ("www-authenticate", challenge)]
    for edits, lines in (("edits", "lines"), ("head_edits", "head_lines")):
        for verb, name, value in answer.get(edits) or []:
            if verb == "DOWN_REMOVE":
                headers = _without(headers, name)
            elif verb == "DOWN_ADD":
                headers = [*headers, (name.lower(), value)]
        for name, value in answer.get(lines) or []:
            headers = [*_without(headers, name), (name.lower(), value)]
    return headers


def _request(case: Case, answer: Answer) -> Heads:
    """What the upstream sees of the client's headers."""
    headers = _lowered([pair for pair in case.headers if pair not in LIES], OF_REQUEST)
    if case.who:
        headers = _told(headers, {"username": case.who, "credential": case.credential})
    for verb, name, value in answer.get("edits") or []:
        if verb == "UP_REMOVE_ALIKE":
            headers = [p for p in headers if _alike(p[0]) != _alike(name)]
        elif verb in ("UP_SET", "UP_REMOVE"):
            headers = _without(headers, name)
        if verb in ("UP_SET", "UP_ADD"):
            headers = [*headers, (name.lower(), value)]
    identity = answer.get("identity")
    return _told(headers, identity) if identity else headers


def _told(headers: Heads, identity: dict[str, Any]) -> Heads:
    """With who it is."""
    name, credential = identity["username"], identity.get("credential")
    values = [IDS[name], CUSTOM_IDS.get(name), name, identity.get("identifier", credential)]
    if not credential:
        values[3:] = [None, "true"]
    headers = [pair for pair in headers if pair[0] not in IDENTITY]
    return headers + [(n, v) for n, v in zip(IDENTITY, values, strict=False) if v]
