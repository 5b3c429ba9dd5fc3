"""Each plugin's page: its example, typed, and what a page has to have."""

import pytest
from plugin_facts import FOLDER, PLUGINS, facts
from plugin_pages import example, page, typed

from sluice import Start
from upstream import Upstream


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_example_does_what_the_page_says(
    gateway: Start, upstream: Upstream, plugin: str
) -> None:
    wanted = facts(plugin)["page"]
    if isinstance(wanted, str):
        assert f'typed("{plugin}", running' in (FOLDER / plugin / wanted).read_text()
        return
    running = gateway(example(plugin, upstream.url))
    assert wanted["shows"] in typed(plugin, running)
    assert len(upstream.requests) == wanted["requests"]
    assert not wanted["header"] or wanted["header"] in upstream.requests[-1].headers


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_page_has_what_people_look_for(plugin: str) -> None:
    text = page(plugin)
    assert text.startswith(f"# {plugin}\n\n")
    assert "```yaml\n" in text
    assert "<!-- fields -->" in text
    assert "priority" in text
    assert "## Cost\n\n<!-- cost -->\n" in text
    assert "## Differences from Kong\n" in text or facts(plugin)["kong"] == "ours alone"
