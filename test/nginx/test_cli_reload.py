"""sluice reload and restart: what they take, remember, and keep when they refuse."""

from __future__ import annotations

import json

from instance import BAD, ONE, TWO, Instance, Instances
from sluice import NGINX
from upstream import Upstream
from wire import wait_until


def test_reload_gives_a_changed_file_to_the_workers_that_run(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        old = instance.status()["workers"]["ready"]
        instance.file.write_text(TWO.format(url=upstream.url))
        assert instance.succeed("reload").startswith("live on 2 workers in ")
        assert instance.status()["workers"]["ready"] == old
        assert [instance.get("/one") for _ in range(10)] == [404] * 10
        assert instance.get("/two") == 200
        # Nothing is new now: whoever reloads all the same means the workers, and their code.
        assert instance.succeed("reload").startswith("reloaded: 2 new workers")
        assert instance.get("/two") == 200


def test_reload_takes_the_file_on_every_new_worker(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        old = set(instance.status()["workers"]["ready"])
        instance.file.write_text(TWO.format(url=upstream.url))
        assert instance.succeed("reload", "--new-workers").startswith("reloaded: 2 new workers")
        assert not old & set(instance.status()["workers"]["ready"])
        assert [instance.get("/one") for _ in range(10)] == [404] * 10
        assert instance.get("/two") == 200


def test_a_bad_file_at_reload_keeps_the_running_configuration(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        before = instance.status()["workers"]
        instance.file.write_text(BAD)
        lines = instance.refuse("reload")
        assert lines[1] == '  line 4: services[0] "one".bogus: unknown field'
        assert lines[-1] == "sluice: reload refused: the running configuration is kept"
        assert instance.status()["workers"] == before
        assert instance.get("/one") == 200


def test_what_nginx_refuses_at_reload_leaves_the_files_as_they_were(instance: Instance) -> None:
    instance.succeed("start")
    kept = ("nginx.conf", "settings.json", "start.json")
    before = [(instance.prefix / name).read_text() for name in kept]
    workers = instance.status()["workers"]
    lines = instance.refuse("reload", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx does not take the configuration:"
    assert [(instance.prefix / name).read_text() for name in kept] == before
    assert instance.status()["workers"] == workers


def test_a_master_that_fails_after_the_test_keeps_the_running_one(instance: Instance) -> None:
    """A plugin that loads in the command and fails in the master (nginx -t runs no Lua)."""
    plugins = instance.folder / "lua" / "plugins"
    plugins.mkdir(parents=True)
    fuse = instance.folder / "loads-left"
    (plugins / "fuse.lua").write_text(
        f"""
        local file = io.open("{fuse}")
        if file then
            local left = tonumber(file:read("*a"))
            file:close()
            if left == 0 then
                error("the fuse is gone")
            end
            file = io.open("{fuse}", "w")
            file:write(left - 1)
            file:close()
        end
        return {{
            name = "fuse", version = "1", priority = 1,
            schema = {{
                name = "fuse",
                fields = {{ {{ config = {{ type = "record", fields = {{}} }} }} }},
            }},
        }}
        """
    )
    instance.flags |= {
        "--lua-package-path": f"{instance.folder}/lua/?.lua",
        "--plugins": "bundled, fuse",
    }
    instance.succeed("start")
    workers = instance.status()["workers"]
    fuse.write_text("1")
    lines = instance.refuse("reload")
    assert lines[0] == "sluice: nginx did not take the configuration:"
    assert lines[-1] == "sluice: reload refused: the running configuration is kept"
    assert instance.status()["workers"] == workers
    assert instance.get("/") == 404


def test_reload_remembers_start_and_reads_the_settings_file_again(instance: Instance) -> None:
    conf = instance.folder / "sluice.conf"
    conf.write_text("header_prefix = X-First\nworkers = 1\n")
    instance.environment["SLUICE_LOG_LEVEL"] = "info"
    instance.succeed("start", conf="sluice.conf")
    del instance.environment["SLUICE_LOG_LEVEL"]

    def settings() -> tuple[str, int, str]:
        found = json.loads((instance.prefix / "settings.json").read_text())
        return found["header_prefix"], found["workers"], found["log_level"]

    assert settings() == ("X-First", 2, "info")
    conf.write_text("header_prefix = X-Second\nworkers = 1\nlog_level = warn\n")
    instance.succeed("reload")
    assert settings() == ("X-Second", 2, "info")
    instance.succeed("reload", workers="3")
    assert settings() == ("X-Second", 3, "info")
    assert len(instance.status()["workers"]["ready"]) == 3
    instance.succeed("restart")
    assert settings() == ("X-Second", 3, "info")


def test_reload_moves_a_listener(instances: Instances) -> None:
    instance, other = instances.make(), instances.make()
    instance.succeed("start")
    other.succeed("start")
    lines = instance.refuse("reload", proxy_listen=f"127.0.0.1:{other.proxy_port}")
    assert "is taken" in lines[0]
    other.succeed("stop")
    instance.succeed("reload", proxy_listen=f"127.0.0.1:{other.proxy_port}")
    wait_until(lambda: instance.get("/") == 0, "the old port to close")
    assert instance.get("/", port=other.proxy_port) == 404


def test_reload_says_which_settings_need_a_restart(instance: Instance) -> None:
    instance.succeed("start")
    shadow = instance.folder / "nginx"
    shadow.symlink_to(NGINX)
    done = instance.run("reload", nginx_binary=str(shadow))
    assert done.returncode == 0
    assert done.stderr == "sluice: warning: nginx_binary changes only with `sluice restart`\n"


def test_restart_checks_before_it_stops(instance: Instance) -> None:
    assert "started" in instance.succeed("start")
    pid = instance.status()["pid"]
    instance.file.write_text(BAD)
    lines = instance.refuse("restart")
    assert lines[-1] == "sluice: restart refused: the running gateway is kept"
    assert instance.status()["pid"] == pid
    instance.file.write_text(ONE.format(url="http://127.0.0.1:9"))
    instance.succeed("restart")
    assert instance.status()["pid"] != pid
    assert instance.get("/") == 404


def test_restart_starts_what_was_stopped(instance: Instance) -> None:
    instance.succeed("start")
    instance.succeed("stop")
    instance.succeed("restart")
    assert instance.get("/") == 404
