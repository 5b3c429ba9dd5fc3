"""What Lua calls of the module, in every phase of requests that nginx refused early.

Such a request may have no list of headers, no URI, no version, no variables yet: nginx gives it to
an error page nevertheless, and with it to every phase of Lua.
"""

import random
from collections.abc import Iterator

import pytest
from refused import HTTP, INDEX, PHASES, REFUSED, answer, expect, mutations
from var_servers import Server


@pytest.fixture(scope="module")
def nginx() -> Iterator[Server]:
    with Server(HTTP, INDEX) as running:
        expect(running)
        yield running


@pytest.mark.parametrize("name", REFUSED)
def test_every_function_in_every_phase(nginx: Server, name: str) -> None:
    before = nginx.workers()
    said = answer(nginx, REFUSED[name])
    if not name.startswith("time out"):  # nginx closes without an answer
        assert b"walked " in said, "the error page was not run"
    assert set(nginx.text("/walked").split()) == set(PHASES)
    assert nginx.workers() == before, "the worker has died"


def test_every_function_at_random(nginx: Server) -> None:
    before = nginx.workers()
    for data in mutations(random.Random(7), 60):
        answer(nginx, data)
    assert nginx.workers() == before, "the worker has died"
