"""A plugin with kinds of entities of its own, which runs what a test sends it."""

import base64
import json
from typing import Any

from sluice import Gateway
from wire import Reply

GADGETS = r"""
local typedefs = require("gateway.schema.typedefs")
package.preload["gadget.class"] = function()
    return {
        select_by_name = function(self, name, options)
            return self.super.select_by_name(self, name:lower(), options)
        end,
        count = function(self)
            local count = 0
            for _ in self:each() do count = count + 1 end
            return count
        end,
    }
end
local endpoints = require("kong.api.endpoints")
local function run(phase)
    local headers = ngx.req.get_headers()
    if headers["x-phase"] ~= phase then return end
    local function pack(...)
        local out = {}
        for i = 1, select("#", ...) do
            local value = select(i, ...)
            out[i] = value == nil and ngx.null or value
        end
        return require("cjson").encode(out)
    end
    local text = pack(pcall(assert(loadstring(ngx.decode_base64(headers["x-code"])))))
    if phase == "header_filter" then
        ngx.header["X-Result"] = text
    elseif phase == "log" then
        ngx.log(ngx.NOTICE, "result: ", text)
    else
        require("gateway.pdk").exit(200, text)
    end
end
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "gadget", fields = { { config = { type = "record", fields = {} } } } },
    daos = {
        gadgets = {
            name = "gadgets",
            primary_key = { "id" },
            endpoint_key = "name",
            cache_key = { "name" },
            ttl = true,
            dao = "gadget.class",
            workspaceable = true,
            admin_api_name = "gadget-box",
            admin_api_nested_name = "gadget",
            fields = {
                { id = typedefs.uuid },
                { created_at = typedefs.created_at },
                { name = { type = "string", required = true, unique = true } },
                { serial = { type = "integer", unique = true } },
                { owner = { type = "foreign", reference = "consumers", on_delete = "cascade" } },
                { color = { type = "string", default = "red", one_of = { "red", "blue" } } },
                { tags = typedefs.tags },
            },
        },
        gizmos = {
            name = "gizmos",
            primary_key = { "id" },
            cache_key = { "consumer", "place" },
            fields = {
                { id = typedefs.uuid },
                { consumer = { type = "foreign", reference = "consumers", required = true,
                    on_delete = "cascade" } },
                { gadget = { type = "foreign", reference = "gadgets", on_delete = "null" } },
                { place = { type = "string", required = true } },
            },
        },
        hidden = {
            name = "hidden",
            primary_key = { "id" },
            generate_admin_api = false,
            db_export = false,
            fields = {
                { id = typedefs.uuid },
                { service = { type = "foreign", reference = "services" } },
                { word = { type = "string" } },
            },
        },
    },
    api = {
        ["/gadget-box/:gadgets/paint/:color"] = {
            POST = function(self, db)
                local name, color = self.params.gadgets, self.params.color
                local gadget, _, err = db.gadgets:update_by_name(name, { color = color })
                if err then
                    return endpoints.handle_error(err)
                end
                ngx.say("painted ", gadget.name, " ", gadget.color, " ", self.args.post.why or "")
                return ngx.exit(200)
            end,
            GET = function() error("no brush") end,
        },
        -- beside a page of entities
        ["/gadget-box/:gadgets"] = {
            before = function(self)
                self.params.gadgets = self.params.gadgets:lower()
            end,
            PATCH = function(self, _, _, parent)
                self.args.post.color = "blue"
                return parent()
            end,
        },
        ["/red-gadgets"] = {
            schema = kong.db.gadgets and kong.db.gadgets.schema,
            methods = {
                GET = function(...)
                    return endpoints.get_collection_endpoint(kong.db.gadgets.schema)(...)
                end,
                POST = function(...)
                    return endpoints.post_collection_endpoint(kong.db.gadgets.schema)(...)
                end,
            },
        },
        ["/red-gadgets/:gadgets"] = {
            GET = function(...)
                return endpoints.get_entity_endpoint(kong.db.gadgets.schema)(...)
            end,
            DELETE = function(...)
                return endpoints.delete_entity_endpoint(kong.db.gadgets.schema)(...)
            end,
        },
    },
    rewrite = function() run("rewrite") end,
    access = function() run("access") end,
    header_filter = function() run("header_filter") end,
    log = function() run("log") end,
}
"""


def headers_of(phase: str, code: str) -> list[tuple[str, str]]:
    """What has the plugin run a piece of Lua in a phase."""
    return [("X-Phase", phase), ("X-Code", base64.b64encode(code.encode()).decode())]


def result_header(reply: Reply) -> str:
    """What the plugin has put into a header of the response."""
    return next(value for name, value in reply.headers if name == "X-Result")


def run(running: Gateway, code: str, phase: str = "access") -> list[Any]:
    """What a piece of Lua returns that the plugin runs."""
    reply = running.ask("/", headers=headers_of(phase, code))
    text = result_header(reply) if phase == "header_filter" else reply.text
    ok, *found = json.loads(text)
    assert ok, found
    return found


def one(running: Gateway, code: str, phase: str = "access") -> Any:  # noqa: ANN401 as the Lua
    """The one value that it returns."""
    found = run(running, f"return {code}", phase)
    assert len(found) <= 1 or set(found[1:]) == {None}, found
    return found[0] if found else None


def refused(running: Gateway, code: str, phase: str = "access") -> dict[str, Any]:
    """The error of what fails, as `kong.db` gives it."""
    value, text, error = run(running, f"return {code}", phase)
    assert value is None or value is False
    assert text == f"[{error['strategy']}] {error['message']}"
    return dict(error)
