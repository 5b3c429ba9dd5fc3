--- What the machine is expected to hold: the one place that names paths of the platform. Where
-- Sluice's own module lies says sluice.built.
--
-- Debian 12 is the tested default. Another nginx (OpenResty) needs settings (`nginx_binary`,
-- `nginx_modules`, `lua_package_path`; `SLUICE_NGINX_SOURCE` for `make build`), not a change here;
-- a port to another distribution changes this file alone. Scripts and Python read it through
-- scripts/platform; scripts/packages has the list that `make run` installs.

local _M = {}

_M.user = "www-data"

_M.nginx_binary = "/usr/sbin/nginx"

-- Loaded in this order: the Lua module needs the development kit.
_M.nginx_modules = {
    "/usr/lib/nginx/modules/ndk_http_module.so",
    "/usr/lib/nginx/modules/ngx_http_lua_module.so",
}

-- For building a module: nginx's source, or as much of it as that needs.
_M.nginx_source = "/usr/share/nginx/src"

-- From this version on nginx has `http2 on;`, and warns of `listen ... http2`.
_M.http2_directive_since = "1.25.1"

-- Slots of the events' log, as module/lib/events/ngx_sluice_ring.c counts them: for four lives, the
-- workers that serve and the old ones of three reloads.
local LIVES, SLOTS_MIN, SLOTS_MAX, SLOTS_ROUND = 4, 256, 1024, 64
-- Listeners, logs, the store and the like, with some to spare.
local OTHER_FILES, FILES_MIN = 240, 512

--- What a worker holds open beside its connections: an eventfd for each slot of the events' log, a
-- channel to each process of four lives, and others.
-- @tparam number workers that serve traffic
-- @treturn number
function _M.files_beside_connections(workers)
    local processes = LIVES * (workers + 1)
    local slots = math.ceil((processes + LIVES) / SLOTS_ROUND) * SLOTS_ROUND
    slots = math.min(math.max(slots, SLOTS_MIN), SLOTS_MAX)
    return math.max(slots + processes + OTHER_FILES, FILES_MIN)
end

-- The CAs that the system trusts; of the package ca-certificates, which not every machine has.
_M.ca_bundle = "/etc/ssl/certs/ca-certificates.crt"

-- Debian's Lua module finds Debian's libraries by itself.
_M.lua_package_cpath = ""

-- Package that brings a file, for messages that say what to install.
_M.package_of_file = {
    [_M.nginx_binary] = "nginx",
    [_M.nginx_modules[1]] = "libnginx-mod-http-ndk",
    [_M.nginx_modules[2]] = "libnginx-mod-http-lua",
}

-- Lua modules that the command line and the gateway need, with their packages.
_M.lua_modules = {
    { name = "argparse", package = "lua-argparse" },
    { name = "cjson", package = "lua-cjson" },
    { name = "lyaml", package = "lua-yaml" },
    { name = "openssl.digest", package = "lua-luaossl" },
    { name = "posix.unistd", package = "lua-posix" },
}

return _M
