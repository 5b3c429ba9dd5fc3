"""The phases of the global `kong`: which one runs, of which plugin, and who may call what there."""

from tracer import plugin

from sluice import Start, proxying
from upstream import Upstream

# A guard as the kit's functions have it, called in each phase.
BODY = """
    allowed = require("gateway.kit.phases").set("rewrite", "log"),
    note = function(self, phase)
        local phases = require("gateway.kit.phases")
        local ok, err = pcall(function() phases.check(self.allowed) end)
        kong.log.notice(phase, " is ", phases.current(), ": ", ok or err:match("function.*"))
    end,
    init_worker = function(self)
        self:note("init_worker")
        ngx.timer.at(0, function() self:note("timer") end)
    end,
    configure = function(self) self:note("configure") end,
    rewrite = function(self) self:note("rewrite") ngx.sleep(0) self:note("rewrite") end,
    access = function(self)
        self:note("access")
        ngx.sleep(0)
        self:note("access")
    end,
    header_filter = function(self) self:note("header_filter") end,
    body_filter = function(self) if ngx.arg[2] then self:note("body_filter") end end,
    log = function(self) self:note("log") end,
"""


def test_the_phase_that_runs_is_known(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "notes"}]}
    running = gateway(config, plugins={"notes": plugin("notes", 1, BODY)})
    refused = r"function cannot be called in %s phase \(only in: rewrite, log\)"
    for phase, count in {"init_worker": 2, "configure": range(1, 9), "access": 2}.items():
        said = refused % phase
        line = rf"handler\.lua:\d+ \[notes\] {phase} is {phase}: {said}"
        running.expect_log(line, count)
    for phase in ("header_filter", "body_filter"):
        running.expect_log(rf"\[notes\] {phase} is {phase}: {refused % phase}", 1)
    running.expect_log(rf"\[kong\] handler\.lua:\d+ timer is timer: {refused % 'timer'}", 2)
    running.expect_log(r"\[notes\] rewrite is rewrite: true", 2)
    running.expect_log(r"\[notes\] log is log: true", 1)
    assert running.ask("/").status == 200


def test_tables_of_a_request_live_as_long_as_it(gateway: Start, upstream: Upstream) -> None:
    """`kong.ctx.plugin` is the plugin's own in all its phases, `shared` everybody's."""
    body = """
        access = function(self)
            ngx.sleep(0)
            kong.ctx.plugin.seen = (kong.ctx.plugin.seen or "") .. self.name
            kong.ctx.shared.seen = (kong.ctx.shared.seen or "") .. self.name
        end,
        log = function(self)
            kong.log(kong.ctx.plugin.seen, " of ", kong.ctx.shared.seen)
        end,
    """
    sources = {"one": plugin("one", 2, body), "two": plugin("two", 1, body)}
    config = proxying(upstream) | {"plugins": [{"name": "one"}, {"name": "two"}]}
    running = gateway(config, plugins=sources)
    running.expect_log(r"\[one\] one of onetwo", 2)
    running.expect_log(r"\[two\] two of onetwo", 2)
    for _ in range(2):
        assert running.ask("/").status == 200
