"""`kong.tracing`: spans that do nothing where nobody looks, and those of a plugin's own tracer."""

from __future__ import annotations

from kit_runner import RUNNER, running, workers

from sluice import Start
from upstream import Upstream

NOBODY = """
    local span = kong.tracing.start_span("mine", { span_kind = 2 })
    span:set_attribute("a", 1)
    span:add_event("b")
    span:record_error("c")
    span:set_status(2)
    for _ in span:each_baggage_item() do error("there is none") end
    span:finish()
    span.a = 1
    return span.is_recording, span.a, kong.tracing.active_span(), kong.tracing.name
"""

OWN = """
    local tracer = kong.tracing.new("mine")
    local root = tracer.start_span("root", { start_time_ns = 10, should_sample = true })
    tracer.set_active_span(root)
    local child = tracer.start_span("child")
    child:set_attribute("a", "b")
    child:record_error({})
    child:set_status(2)
    child:finish()
    ngx.sleep(0)
    root:finish(20)
    local same = child.parent == root and child.trace_id == root.trace_id
        and child.parent_id == root.span_id and child.should_sample
        and tracer == kong.tracing.new("mine") and tracer.active_span() == nil
        and tracer.get_root_span() == root and tracer.get_spans()[0] == 2
    return same, { #root.trace_id, #root.span_id, root.end_time_ns - root.start_time_ns },
        { child.attributes.a, child.events[1].name, child.status },
        child.end_time_ns >= child.start_time_ns and child.start_time_ns > 1e18
"""


def test_spans_do_nothing_where_nobody_looks(gateway: Start, upstream: Upstream) -> None:
    (one,) = workers(gateway(running(upstream), plugins=RUNNER))
    assert one.run(NOBODY) == [False, None, None, "noop"]


def test_a_tracer_of_a_plugin_records(gateway: Start, upstream: Upstream) -> None:
    (one,) = workers(gateway(running(upstream), plugins=RUNNER))
    assert one.run(OWN) == [True, [16, 8, 10], ["b", "exception", 2], True]
    # Another request has none of them.
    assert one.run('return kong.tracing.new("mine").get_spans()[0]')[0] == 0


def test_wrong_arguments_are_told(gateway: Start, upstream: Upstream) -> None:
    (one,) = workers(gateway(running(upstream), plugins=RUNNER))
    begin = 'local tracer = kong.tracing.new("mine") '
    for code, words in (
        ('tracer.start_span("")', "invalid span name"),
        ('tracer.start_span("a", 1)', "invalid options type"),
        ('tracer.start_span("a", { attributes = 1 })', "invalid attributes"),
        ('tracer.start_span("a"):set_attribute(1, 1)', "invalid key"),
        ('tracer.start_span("a"):add_event(1)', "invalid name"),
        ('tracer.start_span("a"):set_status("2")', "invalid status"),
        ('tracer.start_span("a"):finish("x")', "invalid span end time"),
        ('tracer.start_span("a"):finish(1)', "invalid span duration"),
        ("tracer.process_span(print)", "phase (only in: log)"),
        ("tracer.set_global_tracer({})", "invalid tracer"),
    ):
        told = one.ask(begin + code)
        assert told["status"] == 500, code
        assert told["values"][0].endswith(words), told
