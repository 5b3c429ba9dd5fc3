"""Plugins that call all that `kong` has of a request, in each phase where it is there."""

# Errors are the test's to see: each call has to return, whatever the request lacks.
READ = """
local function walk(response)
    local request, client = kong.request, kong.client
    for name, call in pairs(request) do
        if name:find("^get_") and not name:find("header$") and not name:find("arg$")
            and not name:find("body") then
            call()
        end
    end
    for _, name in ipairs({ "Host", "X-A", "User-Agent", "Content-Type", "X-Consumer-Username" }) do
        request.get_header(name)
    end
    request.get_query_arg("apikey")
    assert(client.get_ip() == "127.0.0.1")
    assert(client.get_forwarded_ip() == "127.0.0.1")
    client.get_port()
    client.get_forwarded_port()
    client.get_consumer()
    client.get_credential()
    client.get_protocol()
    client.tls.get_full_client_certificate_chain()
    kong.router.get_route()
    kong.router.get_service()
    kong.plugin.get_id()
    kong.log.set_serialize_value("own", "value")
    if response then
        kong.response.get_status()
        kong.response.get_source()
        kong.response.get_headers()
        kong.response.get_header("X-A")
        kong.service.response.get_status()
        kong.service.response.get_headers()
        kong.service.response.get_header("X-A")
    end
end
"""

WRITE = """
local function write()
    local ask, answer = kong.service.request, kong.response
    kong.request.get_raw_body()
    kong.request.get_body()
    for _, name in ipairs({ "X-Mine", "Host", "Via", "X-Consumer-Custom-ID", "User-Agent" }) do
        ask.set_header(name, "mine")
        ask.add_header(name, "more")
        ask.clear_header(name)
        answer.set_header(name, "mine")
        answer.add_header(name, "more")
        answer.clear_header(name)
    end
    ask.set_headers({ ["X-A"] = { "1", "2" }, Host = "a.example" })
    ask.clear_header("X-A")
    answer.set_headers({ ["X-B"] = { "1", "2" } })
    ask.set_query({ a = true })
    ask.set_path("/kit/x")
    ask.set_body({ a = 1 })
    ask.set_raw_body("")
    kong.service.set_retries(1)
    kong.service.set_timeouts(60000, 60000, 60000)
end
"""

PLUGIN = (
    """
local Plugin = { VERSION = "1.0.0", PRIORITY = ORDER }
"""
    + READ
    + WRITE
)


def plugin(order: int, phases: str) -> dict[str, str]:
    """Its files."""
    return {"handler": PLUGIN.replace("ORDER", str(order)) + phases + "\nreturn Plugin\n"}


LATE = """
function Plugin:header_filter() walk(true) kong.response.set_header("X-Late", "1") end
function Plugin:body_filter() walk(true) end
function Plugin:log() walk(true) assert(kong.log.serialize().own == "value") end
"""

KIT = {
    "kit-walks": plugin(850, "function Plugin:access() walk() write() walk() end" + LATE),
    "kit-whole": plugin(
        840,
        """
function Plugin:access() walk() write() end
function Plugin:response() walk(true) kong.service.response.get_raw_body() end
function Plugin:log() walk(true) kong.log.serialize() end
""",
    ),
    "kit-exits": plugin(
        6,
        """
function Plugin:access() walk() kong.response.exit(200, "own answer", { ["X-A"] = "b" }) end
"""
        + LATE,
    ),
    "kit-errors": plugin(
        6,
        """
function Plugin:access() walk() kong.response.error(403, "own answer", { ["X-A"] = "b" }) end
"""
        + LATE,
    ),
}
"""For `kong_plugins` of a gateway."""
