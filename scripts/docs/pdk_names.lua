--- The functions that Kong 3.9.3 documents for plugins, by their tables: what docs/pdk.md has rows
-- for.

local function words(text)
    local list = {}
    for word in text:gmatch("%S+") do
        list[#list + 1] = word
    end
    return list
end

local _M = {}

--- Table -> names in it, in the order of the page.
_M.tables = {
    {
        "client",
        words([[
        get_ip get_forwarded_ip get_port get_forwarded_port get_credential get_consumer
        load_consumer authenticate get_protocol
    ]]),
    },
    {
        "client.tls",
        words([[
        request_client_certificate disable_session_reuse get_full_client_certificate_chain
        set_client_verify disable_http2_alpn
    ]]),
    },
    { "cluster", words("get_id") },
    { "ip", words("is_trusted") },
    {
        "log",
        words([[
        emerg alert crit err warn notice info debug inspect inspect.on inspect.off deprecation
        set_serialize_value serialize
    ]]),
    },
    { "nginx", words("get_subsystem get_statistics") },
    { "node", words("get_id get_memory_stats get_hostname") },
    { "plugin", words("get_id") },
    {
        "request",
        words([[
        get_scheme get_host get_port get_forwarded_scheme get_forwarded_host get_forwarded_port
        get_forwarded_path get_forwarded_prefix get_http_version get_method get_path get_raw_path
        get_path_with_query get_raw_query get_query_arg get_query get_header get_headers
        get_raw_body get_body get_start_time get_uri_captures
    ]]),
    },
    {
        "response",
        words([[
        get_status get_header get_headers get_source set_status set_header add_header clear_header
        set_headers get_raw_body set_raw_body exit error
    ]]),
    },
    { "router", words("get_route get_service") },
    {
        "service",
        words([[
        set_upstream set_target set_target_retry_callback set_tls_cert_key set_retries set_timeouts
        set_tls_verify set_tls_verify_depth set_tls_verify_store
    ]]),
    },
    {
        "service.request",
        words([[
        enable_buffering set_scheme set_path set_raw_query set_method set_query clear_query_arg
        set_header add_header clear_header set_headers set_raw_body set_body disable_tls
    ]]),
    },
    { "service.response", words("get_status get_headers get_header get_raw_body get_body") },
    { "table", words("new clear merge") },
    { "telemetry", words("log") },
    {
        "tracing",
        words([[
        active_span set_active_span process_span start_span get_sampling_decision set_should_sample
    ]]),
    },
    {
        "vault",
        words([[
        is_reference parse_reference get try update flush warmup init_worker
    ]]),
    },
}

--- Methods of a span, which `kong.tracing.start_span` makes.
_M.span = words("finish add_event set_attribute set_status record_error")

--- Name -> why Sluice refuses it: at most five, none of which a public plugin was seen to use.
_M.refused = {
    ["service.set_target_retry_callback"] = "a retry takes the next target at once, without Lua.",
}

return _M
