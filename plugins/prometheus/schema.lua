--- Configuration of the prometheus plugin, in Kong's layout.
-- @module plugins.prometheus.schema

local typedefs = require("gateway.schema.typedefs")

local function flag(description)
    return { type = "boolean", default = false, description = description }
end

return {
    name = "prometheus",
    description = "Counts requests for Prometheus, by Kong's metric names and labels.",
    fields = {
        { protocols = typedefs.protocols },
        {
            config = {
                type = "record",
                description = "What is counted.",
                fields = {
                    {
                        per_consumer = flag(
                            "Have the username of the consumer in the label `consumer` of "
                                .. "`kong_http_requests_total` and `kong_bandwidth_bytes`."
                        ),
                    },
                    {
                        status_code_metrics = flag(
                            "Count requests by status: `kong_http_requests_total`."
                        ),
                    },
                    {
                        ai_metrics = flag(
                            "Count requests to language models. No bundled plugin makes any."
                        ),
                    },
                    {
                        latency_metrics = flag(
                            "Count requests by duration: `kong_request_latency_ms`, "
                                .. "`kong_upstream_latency_ms`, `kong_kong_latency_ms`."
                        ),
                    },
                    {
                        bandwidth_metrics = flag(
                            "Count the bytes of requests and responses: `kong_bandwidth_bytes`."
                        ),
                    },
                    {
                        upstream_health_metrics = flag(
                            "Show the targets of upstreams: `kong_upstream_target_health`."
                        ),
                    },
                },
            },
        },
    },
}
