"""A plugin that writes down when it is called."""

SCHEMA = """
schema = {
    name = "%(name)s",
    fields = {
        { protocols = require("gateway.schema.typedefs").protocols_http },
        { config = { type = "record", fields = {
            { tag = { type = "string", default = "default" } },
            { stop = { type = "integer" } },
            { fail = { type = "string" } },
        } } },
    },
},
"""


def plugin(name: str, priority: int, body: str) -> str:
    """The source of a plugin with the fields tag, stop and fail; `body` holds its phases."""
    return f"""
local pdk = require("gateway.pdk")
return {{
    name = "{name}", VERSION = "0.1.0", PRIORITY = {priority},
    {SCHEMA % {"name": name}}
    {body}
}}
"""


def tracer(name: str, priority: int, phases: str = "access header_filter body_filter log") -> str:
    """A plugin that leaves `name:tag` in a header of the request or the response or in the log."""
    bodies = {
        "access": """
            local seen, mine = ngx.req.get_headers()["X-Trace"], self.name .. ":" .. conf.tag
            ngx.req.set_header("X-Trace", seen and seen .. " " .. mine or mine)
            if conf.stop then pdk.exit(conf.stop, { by = self.name }) end
            if conf.fail == "access" then error("failed on purpose") end""",
        "header_filter": """
            if conf.fail == "header_filter" then error("failed on purpose") end
            ngx.header["Content-Length"] = nil  -- body_filter may change it
            local seen, mine = ngx.header["X-Filtered"], self.name .. ":" .. conf.tag
            ngx.header["X-Filtered"] = seen and seen .. " " .. mine or mine""",
        "body_filter": """
            if conf.fail == "body_filter" then error("failed on purpose") end
            if ngx.arg[2] then ngx.arg[1] = (ngx.arg[1] or "") .. " " .. self.name end""",
        "log": """
            if conf.fail == "log" then error("failed on purpose") end
            ngx.log(ngx.NOTICE, "logged by ", self.name, ":", conf.tag, " ", ngx.status)""",
    }
    functions = [f"{p} = function(self, conf) {bodies[p]} end," for p in phases.split()]
    return plugin(name, priority, "\n".join(functions))
