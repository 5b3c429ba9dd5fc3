--- What the machine is expected to hold: every path and package name of the platform.
--
-- Debian 12 is the tested default. Another nginx (OpenResty) needs settings (`nginx_binary`,
-- `nginx_modules`, `lua_package_path`), not a change here; a port to another distribution
-- changes this file alone. scripts/packages has the list that `make run` installs.

local _M = {}

_M.user = "www-data"

_M.nginx_binary = "/usr/sbin/nginx"

-- Loaded in this order: the Lua module needs the development kit.
_M.nginx_modules = {
    "/usr/lib/nginx/modules/ndk_http_module.so",
    "/usr/lib/nginx/modules/ngx_http_lua_module.so",
}

-- Sluice's own module, below its root; `make build` makes it, and notes beside it for which
-- version of nginx.
_M.sluice_module = "build/module/ngx_sluice_module.so"
_M.sluice_module_version = "build/module/nginx_version"

-- Debian's Lua module finds Debian's libraries by itself.
_M.lua_package_cpath = ""

-- Package that brings a file, for messages that say what to install.
_M.package_of_file = {
    ["/usr/sbin/nginx"] = "nginx",
    ["/usr/lib/nginx/modules/ndk_http_module.so"] = "libnginx-mod-http-ndk",
    ["/usr/lib/nginx/modules/ngx_http_lua_module.so"] = "libnginx-mod-http-lua",
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
