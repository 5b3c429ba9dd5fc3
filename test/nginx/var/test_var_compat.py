"""compat/resty/kong/var.lua: lua-kong-nginx-module's variable API."""

from nginx import Nginx

HTTP = """
    lua_kong_load_var_index default;
    lua_kong_load_var_index $made;
    init_by_lua_block {
        local kong_var = require("resty.kong.var")
        local said = {}
        said.indexes = type(kong_var.load_indexes().host)
        kong_var.patch_metatable()
        said.twice = select(2, pcall(kong_var.patch_metatable))
        package.loaded.said = said
    }
    server {
        listen 127.0.0.1:@port@;
        set $made "as made";
        location / { content_by_lua_block {
            local kong_var, said = require("resty.kong.var"), require("said")
            ngx.say(said.indexes, " ", said.twice:match("[^:]*$"))
            kong_var.set("made", "new")
            ngx.say(kong_var.get("made"), " ", ngx.var.made, " ", kong_var.get("server_addr"))
            ngx.say(select(2, pcall(kong_var.load_indexes)):match("[^:]*$"))
            ngx.say(select(2, pcall(kong_var.patch_metatable)):match("[^:]*$"))
            -- what its own module answers with what was
            ngx.req.set_uri_args("a=2")
            ngx.say(ngx.var.args, ngx.var.is_args)
            ngx.req.clear_header("X-Forwarded-For")
            ngx.say(tostring(ngx.var.http_x_forwarded_for))
            ngx.req.set_method(ngx.HTTP_PUT)
            ngx.say(ngx.var.request_method)
        } }
    }
"""


def test_code_for_its_module_works_and_is_never_stale() -> None:
    with Nginx(HTTP, workers=1) as server:
        reply = server.ask("/?a=1", headers={"X-Forwarded-For": "10.0.0.1"})
    assert reply.body.decode().splitlines() == [
        "number  patch_metatable should only be called once",
        "new new 127.0.0.1",
        " load_indexes can only be called in init phase",
        " patch_metatable can only be called in init phase",
        "a=2?",
        "nil",
        "PUT",
    ]
