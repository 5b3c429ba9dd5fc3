--- Numbers of processes, as the log and the sockets have them: nginx's worker ids, and one more.
-- The log's is SLUICE_RING_AGENT of module/core/ring/ring.h.
-- @module sluice.events.worker_id

local _M = {}

--- Stands for a process that is no worker: the privileged agent.
_M.AGENT = 1023

--- The largest of a worker.
_M.MAX = _M.AGENT - 1

return _M
