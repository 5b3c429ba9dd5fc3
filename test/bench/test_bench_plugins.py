"""The scenario of plugins: what it finds to measure, what it calls it, and a run of one plugin."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import kinds
import plugin_cost
import pytest
import scenario
from report import Metric

ROOT = Path(__file__).resolve().parents[2]


def described() -> dict[str, Any]:
    """The scenario, with what the plugins' folders say."""
    return plugin_cost.described(dict(scenario.load("plugins").data))


def test_each_plugin_in_c_is_measured_or_left_out() -> None:
    there = plugin_cost.native(ROOT)
    assert "key-auth" in there
    found = {each.name for each in plugin_cost.subjects(described(), there)}
    measured = {name.partition("@")[0] for name in found}
    assert there - set(described()["left_out"]) <= measured


def test_what_is_not_there_is_not_measured() -> None:
    found = plugin_cost.subjects(described(), {"key-auth", "acl"})
    assert [each.name for each in found] == ["acl", "key-auth"]
    with pytest.raises(scenario.ScenarioError, match=r"no cost\.toml says how to measure new-one"):
        plugin_cost.subjects(described(), {"key-auth", "new-one"})


def test_both_routes_differ_in_the_plugin_alone() -> None:
    (acl,) = plugin_cost.subjects(described(), {"key-auth", "acl"})[:1]
    without, with_it = acl.route("a"), acl.route("b")
    assert [plugin["name"] for plugin in without["plugins"]] == ["key-auth"]
    assert [plugin["name"] for plugin in with_it["plugins"]] == ["key-auth", "acl"]
    assert acl.head("a").replace(b"/a/", b"/b/") == acl.head("b")
    assert b"apikey" in acl.head("a")
    assert b"apikey" not in acl.head("a", bare=True)


def test_ranges() -> None:
    data = described() | {"plugins": {"ip-restriction": {"ranges": {"deny": 10_000}}}}
    (found,) = plugin_cost.subjects(data, {"ip-restriction"})
    ranges = found.plugins[0]["config"]["deny"]
    assert len(set(ranges)) == 10_000
    assert ranges[256] == "10.1.0.0/24"


def test_the_worst_way_is_that_of_the_plugin() -> None:
    one, two, three = (Metric(value, "ratio", value, value) for value in (1.1, 1.3, 1.2))
    assert plugin_cost.named(
        {("jwt@hs256", ""): one, ("jwt@rs256", ""): two, ("basic-auth", plugin_cost.NGINX): three}
    ) == {
        "jwt_hs256_cpu_ratio": one,
        "jwt_rs256_cpu_ratio": two,
        "basic_auth_nginx_cpu_ratio": three,
        "jwt_cpu_ratio": two,
    }


def test_limits_are_of_what_is_measured() -> None:
    names = {name.partition("@")[0].replace("-", "_") for name in described()["plugins"]}
    limits = {name.removesuffix("_cpu_ratio") for name in scenario.load("plugins").limits}
    assert limits <= names


@pytest.mark.long
def test_a_run_of_one_plugin() -> None:
    left_out = dict.fromkeys(plugin_cost.native(ROOT), "")
    data = described() | {"left_out": left_out, "rounds": 4, "limit_s": 1, "connections": 4}
    data["plugins"] = {"key-auth": data["plugins"]["key-auth"]}
    small = dataclasses.replace(scenario.load("plugins"), data=data)
    metrics = kinds.measure(small, time.monotonic())
    assert metrics.keys() == {"key_auth_cpu_ratio", "key_auth_nginx_cpu_ratio"}
    assert all(0.5 < found.value < 2 for found in metrics.values())
