"""Random walks through requests, on our server and on one without the module: each read of a
variable, in every phase and after every change, gives the same on both.

Not compared, for they differ by nature: $connection, $connection_requests, $connection_time,
$msec, $pid, $remote_port, $request_id, $request_time, $server_port, $time_iso8601, $time_local,
$tcpinfo_*, $upstream_addr and the times of an upstream.
"""

import random

from seeds import seed_of
from var_servers import both
from var_walks import HTTP, INDEX, TESTS, some_request, walk

from wire import Wire

WALKS = 1500
SEED = seed_of("var_random")


def test_reads_are_those_of_a_server_without_the_module() -> None:
    with both(HTTP.replace("@tests@", TESTS), INDEX) as (ours, plain):
        for server in (ours, plain):
            server.expect_log(r"\[(error|warn)\]", range(100000))
        chosen = random.Random(SEED)
        reads = 0
        with Wire(ours.proxy_port) as our_wire, Wire(plain.proxy_port) as plain_wire:
            for number in range(WALKS):
                request = some_request(chosen)
                our = walk(ours, our_wire, request)
                theirs = walk(plain, plain_wire, request)
                assert our == theirs, f"walk {number} of SEED={SEED}: {request}"
                reads += len(our)
        assert reads > WALKS * 20
