"""Requests made of the OpenAPI document: what comes back is what it says, and never a 500."""

from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis
from admin_client import Client, uuid
from hypothesis import strategies
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from seeds import seed_of
from soaks import soak

from sluice import Gateway
from wire import DEADLINE

EXAMPLES = soak(3, 30)
"""Requests for each method of each path."""
SEED = seed_of("admin_openapi")

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

# What stands in a path for an entity; at first there is one of each kind under the name.
KEYS = ("known", uuid(1), uuid(2), "127.0.0.1:1", "key-auth", "services")


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    """A gateway with an entity of several kinds."""
    with Gateway(None) as gateway:
        client = Client(gateway)
        client.must(200, "PUT", "/services/known", {"host": "127.0.0.1", "id": uuid(1)})
        client.must(200, "PUT", "/services/known/routes/known", {"paths": ["/"]})
        client.must(200, "PUT", "/consumers/known", {})
        client.must(200, "PUT", "/upstreams/known", {})
        client.must(200, "PUT", "/upstreams/known/targets/127.0.0.1:1", {})
        yield gateway


def test_every_answer_is_declared(running: Gateway) -> None:
    print(f"seed {SEED}")
    document = Client(running).must(200, "GET", "/openapi.json")
    schema = schemathesis.openapi.from_dict(document)
    count = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @hypothesis.seed(SEED)
        @hypothesis.settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(), key=strategies.sampled_from((*KEYS, None)))
        def check(case: schemathesis.Case, key: str | None) -> None:
            if key:
                case.path_parameters = dict.fromkeys(case.path_parameters or {}, key)
            reply = case.call(base_url=running.admin, timeout=DEADLINE)
            case.validate_response(reply, checks=CHECKS)

        check()
        count += 1
    assert count > 50
