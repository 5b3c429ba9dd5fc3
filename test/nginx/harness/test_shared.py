"""Gateways that tests share: each test fails for its own lines, and sees no others."""

from collections.abc import Iterator
from pathlib import Path

import evidence
import pytest
from shared import Pool
from trouble import Trouble

from sluice import Gateway
from wire import Headers, wait_until


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Pool]:
    """That of a file, whose failures are meant and leave nothing behind."""
    monkeypatch.setattr(evidence, "FAILED", tmp_path)
    pool = Pool()
    yield pool
    pool.close()


def saying(code: str, status: int = 200) -> dict:
    """A route whose requests run Lua."""
    end = {"name": "request-termination", "config": {"status_code": status}}
    says = {"name": "pre-function", "config": {"access": [code]}}
    return {"routes": [{"name": "r", "paths": ["/"]}], "plugins": [says, end]}


def heard(running: Gateway) -> Headers:
    """The head of an answer."""
    reply = running.ask("/?asked")
    assert reply.status == 200
    return reply.headers


def test_the_next_test_has_its_own_configuration_and_logs(pool: Pool) -> None:
    with pool.test() as serving:
        first = serving(saying("kong.log.err('one') kong.response.set_header('A', '1')"))
        first.expect_log("one", 1)
        assert heard(first).get("A") == "1"
        wait_until(lambda: "asked" in first.access_log(), "the line of the request")
    with pool.test() as serving:
        second = serving(saying("kong.response.set_header('B', '1')"))
        assert second is first
        assert "one" not in second.error_log()
        assert "asked" not in second.access_log()
        assert {name: heard(second).get(name) for name in "AB"} == {"A": None, "B": "1"}
        assert serving({}) is second
        assert second.ask("/").status == 404


def test_other_settings_are_another_gateway(pool: Pool) -> None:
    with pool.test() as serving:
        made = [serving({}, client_max_body_size=f"{size}k") for size in range(4)]
        assert len({gateway.master() for gateway in made}) == 4
    with pool.test() as serving:
        assert serving({}, client_max_body_size="3k") is made[3]
        assert serving({}) not in made
        assert [gateway.started for gateway in made] == [False, False, True, True]


SAYS_ONE = "kong.log.err('one')"


def part(pool: Pool, declared: int) -> Gateway:
    """What a test does that has one line written and declares so many."""
    with pool.test() as serving:
        running = serving(saying(SAYS_ONE))
        if declared:
            running.expect_log("one", declared)
        heard(running)
    return running


def test_an_undeclared_line_fails_the_test_that_it_comes_in(pool: Pool) -> None:
    with pool.test() as serving:
        first = serving({})
    with pytest.raises(Trouble, match="undeclared"):
        part(pool, 0)
    assert part(pool, 1) is not first


def test_what_is_declared_has_to_come_in_the_test(pool: Pool) -> None:
    assert part(pool, 1) is part(pool, 1)
    with pytest.raises(Trouble, match="1 lines, declared 2"):
        part(pool, 2)


def test_a_declaration_ends_with_its_test(pool: Pool) -> None:
    part(pool, 1)
    with pytest.raises(Trouble, match="undeclared"):
        part(pool, 0)


def test_a_late_line_fails_as_well(pool: Pool) -> None:
    with pool.test() as serving:
        first = serving(saying(SAYS_ONE))
    with (first.settings["prefix"] / "logs" / "error.log").open("a") as log:
        log.write("2026/01/01 00:00:00 [alert] 1#1: worker process 2 exited on signal 11\n")
    with pytest.raises(Trouble, match="signal 11"):
        part(pool, 1)
    assert len(evidence.crashes()) == 1  # not one of this test's
