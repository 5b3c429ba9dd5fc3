"""`sluice nginx-conf`: an nginx with the lines that it prints, and no other of Sluice's, has the
libraries."""

import itertools
import re
import subprocess

import pytest

from instance import COMMAND
from nginx import Nginx
from wire import wait_until

USES = """
    init_worker_by_lua_block {
        local ev = assert(require("sluice.events").new())
        local uses = { ev = ev, heard = 0, rung = 0 }
        package.loaded.uses = uses
        ev:subscribe("test", "*", function() uses.heard = uses.heard + 1 end)
        assert(ev:init_worker())
        uses.host = require("sluice.var").handle("host")
        local timers = require("sluice.timer").new()
        assert(timers:start())
        timers:at(0.01, function() uses.rung = uses.rung + 1 end)
    }
    server {
        listen 127.0.0.1:@port@;
        location / {
            content_by_lua_block {
                local uses = require("uses")
                uses.ev:publish("all", "test", "asked", "here")
                ngx.say(uses.heard, " ", uses.rung, " ", uses.host:get())
            }
        }
    }
"""

OURS = re.compile(r"^ *(?:load_module|lua_package_path|sluice_\w+) .*\n", re.MULTILINE)


def printed(*arguments: str) -> str:
    done = subprocess.run(
        [COMMAND, "nginx-conf", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


class Printed(Nginx):
    """An nginx with the printed lines in the places that they name."""

    def write(self, text: str) -> None:
        text, removed = OURS.subn("", text)
        assert removed >= 2
        text = text.replace("http {\n", "http {\n" + printed("http"))
        super().write(printed("main") + text)


def test_an_nginx_with_these_lines_has_the_libraries() -> None:
    with Printed(USES, workers=2) as server:
        right = re.compile(r"[1-9]\d* 1 localhost\n")
        wait_until(lambda: right.fullmatch(server.text("/")), "events, the timer, a variable")


@pytest.mark.parametrize("part", ["main", "http"])
def test_each_line_is_explained(part: str) -> None:
    lines = printed(part).splitlines()
    assert lines[0].startswith("# ")
    for before, line in itertools.pairwise(lines):
        # nginx's Lua module is explained with what it needs.
        assert line.startswith("#") or before.startswith("# ") or "http_lua" in line, line


def test_what_needs_a_shared_dictionary_is_said() -> None:
    """As a comment: none of them is needed unless another transport is asked for."""
    assert "\n# lua_shared_dict sluice_events 16m;\n" in printed("http")


def test_settings_are_in_the_lines() -> None:
    assert "sluice_events_size 1m;" in printed("main", "--events-size", "1m")
    assert printed() == printed("main") + printed("http")
