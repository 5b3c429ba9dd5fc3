"""Arguments, cookies and headers in hostile texts: every short text of the letters that matter, and
random long ones, read by number and as `ngx.var` does in the same request.
"""

import pytest
from var_compared import INDEX, check_random, check_same, configuration
from var_servers import Server

ROUNDS = 40


@pytest.mark.parametrize(("prefix", "letters"), [("arg_", 5), ("cookie_", 7)])
def test_every_short_text(prefix: str, letters: int) -> None:
    with Server(configuration(), INDEX) as server:
        for number in range(1, letters + 1):
            check_same(server, f"/{prefix}/{number}", 4 * letters**5)


def test_random_texts() -> None:
    with Server(configuration(), INDEX) as server:
        check_random(server, ROUNDS)
