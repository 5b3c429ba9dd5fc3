"""What the sluice command refuses: one clear line, non-zero, nothing half-started."""

from __future__ import annotations

import socket
import subprocess

import pytest

from instance import AS_ROOT, BAD, SECONDS, Instance, copy_checkout, is_untouched
from sluice import COMMAND, NGINX, ROOT


def test_a_bad_declarative_file_prints_every_error(instance: Instance) -> None:
    instance.file.write_text(BAD)
    errors = [
        '  line 4: services[0] "one".bogus: unknown field',
        '  line 6: services[0] "one".routes[0] "one".paths[0]: should start with: '
        "/ (fixed path) or ~/ (regex path)",
    ]
    title = f"sluice: file: {instance.file} has 2 errors:"
    assert instance.refuse("start") == [title, *errors]
    assert instance.refuse("check", str(instance.file), prefix=None) == [title, *errors]
    assert is_untouched(instance)


def test_a_key_that_stands_twice_is_named_with_its_place(instance: Instance) -> None:
    instance.file = instance.folder / "sluice.json"
    instance.file.write_text(
        '{"_format_version": "3.0",\n "services": [{"name": "a", "port": 80,\n  "port": 81}]}\n'
    )
    assert instance.refuse("check", str(instance.file), prefix=None) == [
        f"sluice: file: {instance.file} has 1 error:",
        "  services[0].port: line 3, column 3: the key 'port' stands twice",
    ]


def test_entities_of_a_plugin_need_the_plugin(instance: Instance) -> None:
    instance.file.write_text(
        '_format_version: "3.0"\nconsumers: [{username: a, keyauth_credentials: [{key: secret}]}]\n'
    )
    assert "1 consumers" in instance.succeed("check", str(instance.file))
    assert instance.refuse("start", plugins="rate-limiting") == [
        f"sluice: file: {instance.file} has 1 error:",
        '  line 2: consumers[0] "a".keyauth_credentials: this collection is not supported by '
        "this version, or its plugin is not loaded",
    ]


def test_check_says_what_a_good_file_holds(instance: Instance) -> None:
    said = instance.succeed("check", "sluice.yaml", prefix=None)
    assert "1 services, 1 routes, 0 upstreams, 0 consumers, 0 plugins" in said
    assert instance.succeed("check", str(ROOT / "examples" / "quickstart.yaml"), prefix=None)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"file": "/none.yaml"}, "file: cannot read /none.yaml: No such file or directory"),
        ({"file": "/"}, "file: cannot read /: it is a directory"),
        (
            {"nginx_binary": "/none/nginx"},
            "nginx_binary: /none/nginx is missing or not executable; correct --nginx-binary",
        ),
        (
            {"nginx_binary": "/bin/true"},
            "nginx_binary: /bin/true is no nginx; correct --nginx-binary",
        ),
        (
            {"nginx_binary": "/bin/cat"},
            "nginx_binary: /bin/cat is no nginx",  # what sanitizers say of it may follow
        ),
        (
            {"nginx_binary": "/bin/ls"},
            "nginx_binary: /bin/ls is no nginx (it says: ",
        ),
        (
            {"nginx_modules": "/none/lua.so"},
            "nginx_modules: /none/lua.so is missing; correct --nginx-modules",
        ),
        (
            {"nginx_modules": ""},
            "nginx_modules: nginx has no Lua module; name it with --nginx-modules",
        ),
        (
            {"error_log": "stderr"},
            "error_log: stderr needs --foreground; a daemon has no terminal",
        ),
        (
            {"access_log": "/none/access.log"},
            "access_log: cannot write /none/access.log; give --access-log another",
        ),
        (
            {"error_log": "none/error.log"},
            "error_log: cannot write ",
        ),
        (
            {"prefix": "/dev/null/run"},
            "prefix: /dev/null is not a directory; give --prefix another",
        ),
        (
            {"proxy_listen": "192.0.2.1:80"},
            "proxy_listen: 192.0.2.1:80 is no address of this machine; "
            "give --proxy-listen one that is",
        ),
        (
            {"plugins": "bundled, no-such-plugin"},
            "plugins: plugin 'no-such-plugin'",
        ),
    ],
)
def test_start_refuses_in_one_line(
    instance: Instance, flags: dict[str, str | None], expected: str
) -> None:
    line = instance.refuse("start", **flags)[0]
    assert line.startswith(f"sluice: {expected}")
    assert is_untouched(instance)


def test_a_taken_port_is_named(instance: Instance) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", instance.proxy_port))
        other.listen()
        (line,) = instance.refuse("start")
    assert line.startswith(f"sluice: proxy_listen: 127.0.0.1:{instance.proxy_port} is taken")
    assert "--proxy-listen" in line
    assert is_untouched(instance)


@pytest.mark.skipif(not AS_ROOT, reason="only root's workers are another user")
def test_workers_that_could_not_enter_the_prefix_are_refused(instance: Instance) -> None:
    instance.folder.chmod(0o700)
    (line,) = instance.refuse("start")
    assert f"'www-data' may not enter {instance.folder}" in line
    (line,) = instance.refuse("start", user="no-such-user")
    assert "there is no user 'no-such-user'" in line


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["bogus"],
        ["start", "--bogus"],
        ["start", "--worker", "2"],
        ["start", "--workers"],
        ["quit", "--timeout", "soon"],
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(instance: Instance, words: list[str]) -> None:
    done = subprocess.run(
        [str(COMMAND), *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("sluice: ")


def test_bad_settings_are_all_named_with_their_source(instance: Instance) -> None:
    conf = instance.folder / "sluice.conf"
    conf.write_text("workers = many\n\nwrokers = 2\n")
    instance.environment["SLUICE_LOG_LEVEL"] = "loud"
    lines = instance.refuse(
        "start", code=2, conf="sluice.conf", workers=None, keepalive_timeout="long"
    )
    assert [line.split(":")[1].strip() for line in lines[1:]] == [
        f"workers ({conf}",
        "log_level (environment SLUICE_LOG_LEVEL)",
        "keepalive_timeout (flag --keepalive-timeout)",
    ]
    assert lines[0].startswith(f"sluice: {conf}:3: unknown setting 'wrokers'")
    assert is_untouched(instance)


def test_what_nginx_refuses_is_shown_and_cleared_away(instance: Instance) -> None:
    lines = instance.refuse("start", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx did not start:"
    assert lines[1] == "  access_log_format: nginx has no variable $no_such_variable"
    assert is_untouched(instance)
    lines = instance.refuse("start", "--foreground", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx does not take the configuration:"
    assert is_untouched(instance)


def test_a_failed_start_leaves_what_was_in_the_prefix(instance: Instance) -> None:
    instance.prefix.mkdir()
    (instance.prefix / "mine.txt").write_text("mine")
    instance.refuse("start", access_log_format="$no_such_variable")
    left = {path.name for path in instance.prefix.iterdir()}
    assert left == {"mine.txt"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, "is missing; run: make build"),
        ("1.2.3", f"was built for nginx 1.2.3, but {NGINX} is nginx/1."),
    ],
)
def test_a_module_of_another_nginx(instance: Instance, version: str | None, expected: str) -> None:
    """A package upgrade of nginx must not leave a module behind that no longer loads."""
    instance.command = copy_checkout(instance.folder / "sluice", version)
    (line,) = instance.refuse("start")
    assert expected in line
    assert line.endswith("run: make build")
    assert not instance.prefix.exists()
