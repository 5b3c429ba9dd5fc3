"""examples/var runs as it stands."""

from example import running, said

from wire import wait_until

PORT = 8011


def test_the_example_runs() -> None:
    with running("var") as lines:
        wait_until(
            lambda: said(PORT, "/a/b", {"X-Tenant": "acme"}) == "acme at /a/b\n",
            "the example to answer",
        )
    assert "GET /a/b: 200 for acme" in "\n".join(lines)
