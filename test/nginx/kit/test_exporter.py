"""`kong.plugins.prometheus.exporter`: metrics of plugins' own, beside the gateway's."""

from __future__ import annotations

import httpx
from kit_runner import RUNNER, running, workers

from sluice import Start
from upstream import Upstream

COUNT = """
    local exporter = require("kong.plugins.prometheus.exporter")
    local registry = exporter.get_prometheus()
    local hits = registry:counter("hits_total", "Hits by kind.", { "kind" })
    local depth = registry:gauge("depth", "How deep.")
    local took = registry:histogram("took", "Seconds.", { "kind" }, { 0.1, 1 })
    hits:inc(1, { 'a"b' })
    hits:inc(2, { 'a"b' })
    depth:set(2.5)
    took:observe(0.5, { "x" })
    hits:inc(1)
    hits:inc(-1, { "c" })
"""

LINES = """# HELP kong_depth How deep.
# TYPE kong_depth gauge
kong_depth 2.5
# HELP kong_hits_total Hits by kind.
# TYPE kong_hits_total counter
kong_hits_total{kind="a\\"b"} 6
# HELP kong_took Seconds.
# TYPE kong_took histogram
kong_took_bucket{kind="x",le="1"} 2
kong_took_bucket{kind="x",le="+Inf"} 2
kong_took_count{kind="x"} 2
kong_took_sum{kind="x"} 1
"""


def test_plugins_metrics_stand_behind_the_gateway_s(gateway: Start, upstream: Upstream) -> None:
    started = gateway(running(upstream), plugins=RUNNER, workers=2)
    started.expect_log(r"metric 'kong_hits_total': 1 labels expected, got 0", 2)
    started.expect_log(r"metric 'kong_hits_total': a counter cannot go down", 2)
    for worker in workers(started):
        worker.run(COUNT)
    with httpx.Client(trust_env=False) as client:
        text = client.get(f"{started.admin}/metrics").text
        assert text.endswith(LINES)
        assert text.count("# TYPE kong_depth") == 1
        headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
        opened = client.get(f"{started.admin}/metrics", headers=headers).text
    assert "# TYPE kong_hits counter\n" in opened
    assert opened.endswith("# EOF\n")
