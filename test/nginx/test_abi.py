"""One check of all that Lua and the C module share (lib/sluice/abi.lua)."""

from __future__ import annotations

import json

from bare import Bare

# A declaration that differs in one thing, and what the error names. FFI takes each name once.
DIFFERENT = {
    "typedef struct { uint64_t accepted, handled, active; } sluice_metrics_connections_t;": (
        "sluice_metrics_connections_t"
    ),
    "typedef struct { size_t length; const char *data; int more; } sluice_header_value_t;": (
        "sluice_header_value_t"
    ),
    "typedef struct { uint64_t revision; uint8_t store[16]; } sluice_core_identity_t;": (
        "sluice_core_identity_t.revision"
    ),
    "typedef struct { const char *last; const char *data; int last_length; uint16_t number; "
    "int length; } sluice_var_value_t;": "sluice_var_value_t.number",
    "typedef struct { int a; } sluice_unknown_t;": "sluice_unknown_t",
    "int sluice_redact_add(const char *name);": "sluice_redact_add",
    "int sluice_redact_is_secret(const char *name, int length);": "sluice_redact_is_secret",
    "int sluice_var_count(int more);": "sluice_var_count",
    "double sluice_var_name(int number, const char **data);": "sluice_var_name",
    "int sluice_count_listening(size_t length, const char *address);": "sluice_count_listening",
    "int sluice_unknown(void);": "sluice_unknown",
}
SAME = "size_t sluice_redact(char *dst, const char *text, size_t length, int kind);"


def test_each_way_to_differ_is_an_error_that_names_it() -> None:
    http = f"""
        init_by_lua_block {{
            local abi, said = require("sluice.abi"), {{}}
            for _, text in ipairs(require("cjson").decode([==[{json.dumps([*DIFFERENT, SAME])}]==]))
            do
                local ok, err = pcall(abi.declare, text)
                said[#said + 1] = ok and tostring(err) or err
            end
            package.loaded.said = table.concat(said, "\\n")
        }}
        server {{
            listen 127.0.0.1:@port@;
            location / {{ content_by_lua_block {{ ngx.say(package.loaded.said) }} }}
        }}
    """
    with Bare(http, workers=1) as server:
        *errors, same = server.text("/").strip().split("\n")
    assert same == "true"
    assert errors == [
        f"the Sluice module in nginx is of another version than its Lua files ({name}); "
        "run: make build, then restart nginx"
        for name in DIFFERENT.values()
    ]


def test_a_flag_that_differs_is_an_error_that_names_it() -> None:
    http = """
        init_by_lua_block {
            local abi = require("sluice.abi")
            abi.declare("int sluice_var_count(void);")
            local said = {}
            for _, flags in ipairs({ { HTTPS = 1 }, { HTTPS = 2 }, { UNKNOWN = 1 } }) do
                local _, err = pcall(abi.check_flags, "SERVICE", flags)
                said[#said + 1] = tostring(err)
            end
            package.loaded.said = table.concat(said, "\\n")
        }
        server {
            listen 127.0.0.1:@port@;
            location / { content_by_lua_block { ngx.say(package.loaded.said) } }
        }
    """
    with Bare(http, workers=1) as server:
        same, *errors = server.text("/").strip().split("\n")
    assert same == "nil"
    assert ["(SERVICE_HTTPS)" in errors[0], "(SERVICE_UNKNOWN)" in errors[1]] == [True, True]
