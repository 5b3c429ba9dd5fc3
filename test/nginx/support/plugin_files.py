"""Plugins that a test brings: a folder each."""

from pathlib import Path


def write_plugin(folder: Path, name: str, source: str) -> Path:
    """Writes a plugin whose handler has its `schema`, and `daos` if any; the handler's path."""
    plugin = folder / "plugins" / name
    plugin.mkdir(parents=True)
    for part in ("schema", *(part for part in ("daos", "api") if f"{part} =" in source)):
        (plugin / f"{part}.lua").write_text(f'return require("plugins.{name}.handler").{part}')
    handler = plugin / "handler.lua"
    handler.write_text(source)
    return handler


KONG_SCHEMA = """
return {
    name = "NAME",
    fields = { { config = { type = "record", fields = { FIELDS } } } },
}
"""


def write_kong_plugin(folder: Path, name: str, files: dict[str, str]) -> Path:
    """Writes a plugin as Kong's users have it, `kong/plugins/<name>`: texts by name of a file.

    `config` makes the schema: the fields of its configuration.
    """
    plugin = folder / "kong" / "plugins" / name
    plugin.mkdir(parents=True)
    fields = files.get("config", "")
    schema = KONG_SCHEMA.replace("NAME", name).replace("FIELDS", fields)
    for part, text in ({"schema": schema} | files).items():
        if part != "config":
            path = plugin / f"{part}.lua"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return plugin


ROUNDS = """
local hosts = require("gateway.upstream.hosts")
local function run(premature)
    if not premature then
        hosts.refresh()
        ngx.timer.at(SECONDS, run)
    end
end
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "rounds", fields = { { config = { type = "record", fields = {} } } } },
    init_worker = function()
        if ngx.worker.id() == 0 then
            ngx.timer.at(0, run)
        end
    end,
}
"""


def rounds(seconds: float) -> str:
    """A plugin, "rounds", that has the control worker's round run again and again."""
    return ROUNDS.replace("SECONDS", str(seconds))
