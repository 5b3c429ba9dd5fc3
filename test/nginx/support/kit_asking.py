"""A plugin of Kong's kind that runs what a request brings, in the phase that it names."""

import json
from typing import Any, NamedTuple
from urllib.parse import quote

from sluice import Gateway
from wire import Pairs, Reply

HANDLER = r"""
local cjson = require("cjson")

-- Functions are taken where a plugin is loaded, as most plugins do.
local log = kong.log

local Asking = { VERSION = "1.0.0", PRIORITY = 500 }

-- What JSON has no word for.
local function plain(value)
    local kind = type(value)
    if kind == "table" then
        local copy = {}
        for key, inner in pairs(value) do
            copy[type(key) == "number" and key or tostring(key)] = plain(inner)
        end
        -- A list begins with 1 and has no holes.
        local count = 0
        for _ in pairs(copy) do
            count = count + 1
        end
        if count ~= #copy then
            local object = {}
            for key, inner in pairs(copy) do
                object[tostring(key)] = inner
            end
            return object
        end
        return copy
    elseif kind == "string" then
        -- JSON is UTF-8, and what is asked about need not be.
        return (value:gsub("[\128-\255]", function(byte)
            return ("<%02x>"):format(byte:byte())
        end))
    elseif kind == "number" or kind == "boolean" then
        return value
    end
    return value == nil and cjson.null or tostring(value)
end

local function answer(phase)
    if ngx.var.http_ask_phase ~= phase then
        return nil
    end
    local code = ngx.unescape_uri(ngx.var.http_ask_code)
    local count, list = 0, nil
    local function keep(...)
        count, list = select("#", ...), { ... }
    end
    keep(pcall(assert(loadstring(code, "asked"))))
    for i = 1, count do
        list[i] = plain(list[i])
    end
    return cjson.encode(list)
end

local function say(text)
    ngx.header["Content-Type"] = "application/json"
    ngx.header["Content-Length"] = #text
    ngx.print(text)
    return ngx.exit(200)
end

function Asking:rewrite()
    local text = answer("rewrite")
    return text and say(text)
end

function Asking:access()
    local text = answer("access")
    if text then
        return say(text)
    end
    -- Goes on with what the code has made of the request.
    text = answer("through")
    if text and not text:find("^%[true") then
        error(text)
    end
end

function Asking:header_filter()
    local text = answer("header_filter")
    if text then
        ngx.header["Answer"] = ngx.encode_base64(text)
    end
end

function Asking:body_filter()
    local text = ngx.arg[2] and answer("body_filter")
    if text then
        log.notice("asked: ", ngx.encode_base64(text), ".")
    end
end

function Asking:log()
    local text = answer("log")
    if text then
        log.notice("asked: ", ngx.encode_base64(text), ".")
    end
end

return Asking
"""

ASKING = {"asking": {"handler": HANDLER}}
"""For `kong_plugins`."""


Json = Any
"""What JSON has."""


class Answer(NamedTuple):
    """What the code has returned, or the error that it has thrown."""

    ok: bool
    values: list[Any]

    @property
    def value(self) -> Json:
        """The first one."""
        assert self.ok, self.values
        return self.values[0] if self.values else None


def headers(code: str, phase: str = "access") -> dict[str, str]:
    """What a request brings; `phase`: also "through", the access phase without an answer."""
    return {"Ask-Phase": phase, "Ask-Code": quote(code)}


def read(text: bytes | str) -> Answer:
    """What the plugin has said."""
    ok, *values = json.loads(text)
    return Answer(ok, values)


def ask(gateway: Gateway, code: str, target: str = "/", **more: Any) -> Answer:
    """Runs code in the phase access, of a request with `method`, `headers` and `body`."""
    lines: Pairs = more.pop("headers", {})
    pairs = [*(lines.items() if isinstance(lines, dict) else lines), *headers(code).items()]
    reply: Reply = gateway.ask(target, more.pop("method", "GET"), pairs, more.pop("body", None))
    assert reply.status == 200, reply.text
    return read(reply.body)
