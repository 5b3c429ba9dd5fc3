"""What the sluice command refuses: one clear line, non-zero, nothing half-started."""

import json
import socket
import subprocess

import pytest

from certificates import make
from instance import AS_ROOT, BAD, SECONDS, Instance, copy_checkout, is_untouched
from sluice import COMMAND, NGINX, ROOT, sanitizers


def test_a_bad_declarative_file_prints_every_error(instance: Instance) -> None:
    instance.file.write_text(BAD)
    errors = [
        '  line 4: services[0] "one".bogus: unknown field',
        '  line 6: services[0] "one".routes[0] "one".paths[0]: should start with: '
        "/ (fixed path) or ~/ (regex path); write /one",
    ]
    title = f"sluice: file: {instance.file} has 2 errors:"
    assert instance.refuse("start") == [title, *errors]
    assert instance.refuse("check", str(instance.file), prefix=None) == [title, *errors]
    assert is_untouched(instance)


def test_settings_are_checked_without_a_file(instance: Instance) -> None:
    conf = instance.folder / "sluice.conf"
    conf.write_text("workers = 2\n")
    said = "the settings are valid: values, nginx, certificates, tokens, plugins\n"
    assert instance.succeed("check", prefix=None, conf=str(conf)) == said
    # As a script's "$FILE" that is not set.
    (line,) = instance.refuse("check", "", prefix=None, conf=str(conf))
    assert line.startswith("sluice: file: no file to check; ")
    conf.write_text("plugins = bundled, none\n")
    (line,) = instance.refuse("check", prefix=None, conf=str(conf))
    assert line.startswith("sluice: plugins: there is no plugin 'none'")
    conf.write_text("workers = two\n")
    (line,) = instance.refuse("check", prefix=None, conf=str(conf), code=2)
    assert "'two' is not valid" in line
    # Of which nothing is named, nothing is checked.
    (line,) = instance.refuse("check", prefix=None)
    assert line.startswith("sluice: file: no file to check; ")


def test_a_key_that_stands_twice_is_named_with_its_place(instance: Instance) -> None:
    instance.file = instance.folder / "sluice.json"
    instance.file.write_text(
        '{"_format_version": "3.0",\n "services": [{"name": "a", "port": 80,\n  "port": 81}]}\n'
    )
    assert instance.refuse("check", str(instance.file), prefix=None) == [
        f"sluice: file: {instance.file} has 1 error:",
        "  line 3, column 3: services[0].port: duplicate key 'port', first in line 2",
        '  3 |   "port": 81}]}',
        "    |   ^",
    ]


def test_a_file_that_is_no_yaml_is_shown_with_a_caret(instance: Instance) -> None:
    instance.file.write_text('_format_version: "3.0"\nservices:\n\t- name: a\n')
    assert instance.refuse("check", str(instance.file), prefix=None) == [
        f"sluice: file: {instance.file} has 1 error:",
        "  line 3, column 1: tab in indentation; use spaces",
        "  3 |  - name: a",
        "    | ^",
    ]


def test_names_that_there_are_not_are_answered_with_those_that_there_are(
    instance: Instance,
) -> None:
    instance.file.write_text(
        """_format_version: "3.0"
plugins: [{name: key-aut}, {name: zipkin}]
services:
  - name: a
    url: http://127.0.0.1
    route: []
    routes:
      - name: r
        host: [a.b]
"""
    )
    *lines, last = instance.refuse("check", str(instance.file), prefix=None)[1:]
    assert last.startswith(
        "  the only route needs a change; with the other errors fixed and the plugin 'zipkin' 100%"
    )
    assert lines == [
        "  line 2: plugins[0] \"key-aut\".name: plugin 'key-aut' not installed; "
        "did you mean key-auth?",
        lines[1],
        '  line 6: services[0] "a".route: unknown field; did you mean routes?',
        '  line 8: services[0] "a".routes[0] "r": at least one of these fields must be non-empty: '
        "'methods', 'hosts', 'headers', 'paths', 'snis'",
        '  line 9: services[0] "a".routes[0] "r".host: unknown field; did you mean hosts?',
    ]
    assert lines[1].startswith(
        "  line 2: plugins[1] \"zipkin\".name: plugin 'zipkin' not installed; "
        "the setting `plugins` has access-log, acl, "
    )


def test_warnings_are_shown_beside_errors(instance: Instance) -> None:
    instance.file.write_text(
        '_format_version: "3.0"\nservices: [{name: a, url: "http://x", port: 9000}]\n'
        "routes: [{name: r, methods: [get]}]\n"
    )
    assert instance.refuse("check", str(instance.file), prefix=None)[:3] == [
        f"sluice: file: {instance.file} has 1 error:",
        '  line 3: routes[0] "r".methods[0]: invalid value: get; did you mean GET?',
        '  warning: line 2: services[0] "a".port: ignored: url already sets it',
    ]


def test_entities_of_a_plugin_need_the_plugin(instance: Instance) -> None:
    instance.file.write_text(
        '_format_version: "3.0"\nconsumers: [{username: a, keyauth_credentials: [{key: secret}]}]\n'
    )
    assert "1 consumer," in instance.succeed("check", str(instance.file))
    assert instance.refuse("start", plugins="rate-limiting") == [
        f"sluice: file: {instance.file} has 1 error:",
        '  line 2: consumers[0] "a".keyauth_credentials: this collection is not supported by '
        "this version, or its plugin is not loaded",
    ]


def test_check_says_what_a_good_file_holds(instance: Instance) -> None:
    said = instance.succeed("check", "sluice.yaml", prefix=None)
    assert "is valid: 1 service, 1 route, 0 upstreams, 0 consumers, 0 plugins\n" in said
    pair = make("gateway")
    held = {
        "certificates": [{"cert": pair.cert, "key": pair.key, "snis": [{"name": "gateway"}]}],
        "ca_certificates": [{"cert": make(name, is_ca=True).cert} for name in ("ca", "cb")],
        "upstreams": [{"name": "u", "targets": [{"target": "10.0.0.1:80"}]}],
        "consumer_groups": [{"name": "g"}],
        "consumers": [{"username": "a", "groups": [{"name": "g"}]}],
    }
    file = instance.folder / "others.json"
    file.write_text(json.dumps({"_format_version": "3.0"} | held))
    assert instance.succeed("check", str(file), prefix=None).splitlines()[0] == (
        f"{file} is valid: 0 services, 0 routes, 1 upstream, 1 consumer, 0 plugins, "
        "1 certificate, 1 sni, 2 ca_certificates, 1 consumer_group, 1 target"
    )
    assert instance.succeed("check", str(ROOT / "examples" / "quickstart.yaml"), prefix=None)


def test_check_knows_what_the_gateway_of_its_prefix_was_started_with(instance: Instance) -> None:
    plugin = instance.folder / "plugins" / "mine"
    plugin.mkdir(parents=True)
    (plugin / "handler.lua").write_text('return { PRIORITY = 1, VERSION = "1.0" }\n')
    (plugin / "schema.lua").write_text(
        'return { name = "mine", fields = { { config = { type = "record", fields = { '
        '{ text = { type = "string", referenceable = true } } } } } } }\n'
    )
    instance.environment["GREETING"] = "hello"
    mine = {
        "plugins": "bundled,mine",
        "lua_package_path": f"{instance.folder}/?.lua",
        "vault_env": ",".join([*sanitizers(), "GREETING"]),
    }
    instance.succeed("start", **mine)
    new = instance.folder / "new.yaml"
    new.write_text(
        '_format_version: "3.0"\n'
        'plugins: [{name: mine, config: {text: "{vault://env/greeting}"}}]\n'
    )
    assert "1 plugin" in instance.succeed("check", str(new))
    assert "1 plugin" in instance.succeed("check", str(new), prefix=None, **mine)
    handler = plugin / "handler.lua"
    handler.write_text(handler.read_text().replace("}", ", acess = function() end }"))
    said = instance.run("check", str(new), prefix=None, **mine).stderr
    assert said == (
        "sluice: warning: plugin 'mine': handler.lua: acess is no phase and never runs; "
        "did you mean access?\n"
    )
    for words in (["reload"], ["reload", "--new-workers"], ["restart", "--no-file"]):
        assert instance.run(*words).stderr == said
    lines = instance.refuse("check", str(new), prefix=None)
    assert "plugin 'mine' not installed; the setting `plugins` has " in lines[1]
    assert lines[2] == (
        "  if 'mine' is your own: --prefix names its gateway, or --plugins bundled,mine and "
        "--lua-package-path the plugin"
    )
    lines = instance.refuse("check", str(new), vault_env="")
    assert "add it to the setting vault_env" in lines[1]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"file": "/none.yaml"}, "file: cannot read /none.yaml: No such file or directory"),
        ({"file": "/"}, "file: cannot read /: is a directory"),
        (
            {"nginx_binary": "/none/nginx"},
            "nginx_binary: /none/nginx is missing or not executable; set --nginx-binary to another",
        ),
        (
            {"nginx_binary": "/bin/true"},
            "nginx_binary: /bin/true is not nginx; set --nginx-binary to another",
        ),
        (
            {"nginx_binary": "/bin/cat"},
            "nginx_binary: /bin/cat is not nginx",  # what sanitizers say of it may follow
        ),
        (
            {"nginx_binary": "/bin/ls"},
            "nginx_binary: /bin/ls is not nginx (it says: ",
        ),
        (
            {"nginx_modules": "/none/lua.so"},
            "nginx_modules: /none/lua.so is missing; set --nginx-modules to another",
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
            "access_log: cannot write /none/access.log; set --access-log to another",
        ),
        (
            {"error_log": "none/error.log"},
            "error_log: cannot write ",
        ),
        (
            {"prefix": "/dev/null/run"},
            "prefix: /dev/null is not a directory; set --prefix to another",
        ),
        (
            {"proxy_listen": "192.0.2.1:80"},
            "proxy_listen: 192.0.2.1:80 is not an address of this machine; "
            "set --proxy-listen to one that is",
        ),
        (
            {"plugins": "bundled, no-such-plugin"},
            "plugins: there is no plugin 'no-such-plugin'; lua_package_path names where your "
            "own are",
        ),
        (
            {"plugins": "key-aut"},
            "plugins: there is no plugin 'key-aut'; did you mean key-auth?",
        ),
        (
            {"plugins": "greeting", "lua_package_path": "/a/?.lua;/b/?.luac"},
            "plugins: plugin 'greeting': not found; these files were looked for:",
        ),
        (
            {"lua_package_path": "/a/?.lua;/opt/my/"},
            "lua_package_path: '/opt/my/' has no ?, which stands for a module's name; "
            "did you mean '/opt/my/?.lua'?",
        ),
    ],
)
def test_start_refuses_in_one_line(
    instance: Instance, flags: dict[str, str | None], expected: str
) -> None:
    line = instance.refuse("start", **flags)[0]
    assert line.startswith(f"sluice: {expected}")
    assert is_untouched(instance)


def test_a_flag_that_is_none_says_what_to_use(instance: Instance) -> None:
    for flag in ("--ssl-cert", "--ssl-cert-key", "--admin-token"):
        name = flag[2:].replace("-", "_")
        line = instance.refuse("start", flag, "x", code=2)[0]
        text = "" if name == "admin_token" else " and it may contain the text of a key"
        assert line == (
            f"sluice: {name} has no flag, since everybody can see flags{text}; use "
            f"SLUICE_{name.upper()} in the environment, or a line of the settings file"
        )


def test_a_list_is_given_once(instance: Instance) -> None:
    twice = ("--trusted-ips", "10.0.0.1", "--trusted-ips", "10.0.0.2")
    line = instance.refuse("start", *twice, code=2)[0]
    assert line == "sluice: --trusted-ips is given twice; separate its values by commas"
    # Of others the last one counts.
    said = instance.refuse("start", "--log-level", "info", "--log-level", "loud", code=2)
    assert said[0].startswith("sluice: log_level (flag --log-level): 'loud' is not valid")


def test_a_taken_port_is_named(instance: Instance) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", instance.proxy_port))
        other.listen()
        (line,) = instance.refuse("start")
    assert line.startswith(f"sluice: proxy_listen: 127.0.0.1:{instance.proxy_port} is in use")
    assert "--proxy-listen" in line
    assert is_untouched(instance)


@pytest.mark.skipif(not AS_ROOT, reason="only root's workers are another user")
def test_workers_that_could_not_enter_the_prefix_are_refused(instance: Instance) -> None:
    instance.folder.chmod(0o700)
    (line,) = instance.refuse("start")
    assert f"'www-data' has no access to {instance.folder}" in line
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
def test_wrong_use_shows_how_it_is_used_and_exits_with_2(
    instance: Instance, words: list[str]
) -> None:
    done = subprocess.run(
        [str(COMMAND), *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 2
    line, usage, more = done.stderr.splitlines()
    assert line.startswith("sluice: ")
    command = words[0] if len(words) > 1 else "<command>"
    assert usage.startswith(f"  usage: sluice {command} ")
    assert more.startswith("  more:  sluice help")


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


def test_names_in_the_environment_are_read_as_those_of_the_file(instance: Instance) -> None:
    instance.environment["SLUICE_PROXY_LISTN"] = "127.0.0.1:1"
    unknown = "environment: unknown variable SLUICE_PROXY_LISTN; did you mean SLUICE_PROXY_LISTEN?"
    assert instance.refuse("start", code=2) == [f"sluice: {unknown}"]
    assert is_untouched(instance)
    del instance.environment["SLUICE_PROXY_LISTN"]
    instance.environment["KONG_PG_HOST"] = "database"
    warning = (
        "sluice: warning: environment: KONG_PG_HOST: Sluice uses no external database: the "
        "store is in the prefix\n"
    )
    assert instance.run("start").stderr == warning
    assert instance.run("status").stderr == ""
    assert instance.run("stop").stderr == ""


def test_what_nginx_refuses_is_shown_and_cleared_away(instance: Instance) -> None:
    lines = instance.refuse("start", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx did not start:"
    assert lines[1] == "  access_log_format: nginx has no variable $no_such_variable"
    assert is_untouched(instance)
    lines = instance.refuse("start", "--foreground", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx rejected the configuration:"
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
