"""examples/timer runs as it stands."""

import json

from example import running, said

from wire import wait_until

PORT = 8012


def test_the_example_runs() -> None:
    with running("timer"):
        wait_until(
            lambda: said(PORT, "/boil?minutes=0.001&name=soft") == "boiling\n", "the example"
        )
        assert said(PORT, "/boil?minutes=9&name=hard") == "boiling\n"
        assert said(PORT, "/boil?minutes=9&name=hard") == "already exists timer\n"
        wait_until(lambda: said(PORT, "/eggs") == "soft\n", "the egg")
        assert said(PORT, "/stop?name=hard") == "stopped\n"
        assert said(PORT, "/stop?name=hard") == "timer not found\n"
        stats = json.loads(said(PORT, "/stats"))
        assert stats["sys"]["runs"] == 1
        assert [timer["interval"] for timer in stats["timers"]] == [60]
