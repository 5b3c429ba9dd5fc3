-- Load script for wrk: sends the requests of a file in turn, prints one line of JSON at the end.
--
-- The file (first argument) holds complete request heads one after the other, made beforehand, so
-- that a request costs the generator one table read. A file with a single request costs nothing at
-- all: wrk then sends the same bytes without calling Lua.

function init(args)
    local file = assert(io.open(args[1], "rb"))
    local requests = {}
    for head in file:read("*a"):gmatch(".-\r\n\r\n") do
        requests[#requests + 1] = head
    end
    file:close()
    assert(#requests > 0, "no request in " .. args[1])

    if #requests == 1 then
        wrk.format = function()
            return requests[1]
        end
        return
    end

    local count, index = #requests, 0
    request = function()
        index = index % count + 1
        return requests[index]
    end
end

function done(summary, latency)
    local errors = summary.errors
    io.write(
        string.format(
            'slice {"requests": %d, "bytes": %d, "duration_us": %d, "p50_us": %d, "p90_us": %d, '
                .. '"p99_us": %d, "p999_us": %d, '
                .. '"connect": %d, "read": %d, "write": %d, "timeout": %d, "status": %d}\n',
            summary.requests,
            summary.bytes,
            summary.duration,
            latency:percentile(50),
            latency:percentile(90),
            latency:percentile(99),
            latency:percentile(99.9),
            errors.connect,
            errors.read,
            errors.write,
            errors.timeout,
            errors.status
        )
    )
end
