-- Nothing is muted: a warning is mended in the code. What stands here is which globals a host
-- program gives to the files that it runs.
std = "luajit"
max_line_length = 100
exclude_files = { "build" }

-- The Lua module for nginx; luacheck's own list lacks its newer functions.
stds.nginx = {
    read_globals = {
        ngx = { fields = { worker = { fields = { pids = {} } }, run_worker_thread = {} } },
    },
}
files["lib"] = { std = "ngx_lua+nginx" }
files["gateway"] = { std = "ngx_lua+nginx" }
-- What plugins in Lua have beside it.
stds.kong = { read_globals = { "kong" } }
files["plugins"] = { std = "ngx_lua+nginx+kong" }

files["test/unit"] = { std = "+busted" }
files["test/plugins"] = { std = "+busted" }
files["test/unit/support/*_oracle.lua"] = { std = "ngx_lua+nginx" }
files["test/unit/support/rate_*.lua"] = { std = "ngx_lua+nginx" }

files["test/bench"] = { std = "ngx_lua+nginx" }

files["bench/agent.lua"] = { std = "ngx_lua+nginx" }
files["bench/lua"] = { std = "ngx_lua+nginx" }
files["bench/flame"] = { std = "ngx_lua+nginx" }
files["bench/timer_agent.lua"] = { std = "ngx_lua+nginx" }
files["bench/var_agent.lua"] = { std = "ngx_lua+nginx" }
files["test/nginx/support/var_*.lua"] = { std = "ngx_lua+nginx" }
files["test/nginx/support/log_*.lua"] = { std = "ngx_lua+nginx" }
files["test/nginx/support/images_*.lua"] = { std = "ngx_lua+nginx" }
-- wrk calls these functions of a script, and reads its table.
files["bench/wrk.lua"] = { globals = { "init", "request", "response", "done", "wrk" } }

files["compat"] = { std = "ngx_lua+nginx" }
