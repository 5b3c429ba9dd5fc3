--- Where what is compiled lies. In a checkout that is below build/, where `make build` puts it; an
-- installed Sluice has another file in the place of this one, which scripts/install writes.
-- @module sluice.built

local root = debug.getinfo(1, "S").source:match("^@(.*)lib/sluice/built%.lua$") or ""

return {
    --- The module for nginx.
    module = root .. "build/module/ngx_sluice_module.so",
    --- A line with the version of nginx that it was built for.
    nginx_version = root .. "build/module/nginx_version",
    --- The core as a library, for programs that are no nginx.
    core = root .. "build/core/libsluice_core.so",
    --- What brings one that is missing, for messages.
    remedy = "run: make build",
}
