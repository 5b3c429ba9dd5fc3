"""kong.tools.time and kong.constants beside nginx's own clocks and numbers."""

from nginx import Nginx

CONF = "server { listen 127.0.0.1:@port@; @runs@ }"


def test_clocks_and_levels_are_nginxs() -> None:
    code = """
        local time, levels = require("kong.tools.time"), require("kong.constants").LOG_LEVELS
        local now = time.get_updated_now()
        local wrong = {}
        for name, level in pairs({
            emerg = ngx.EMERG, alert = ngx.ALERT, crit = ngx.CRIT, error = ngx.ERR,
            warn = ngx.WARN, notice = ngx.NOTICE, info = ngx.INFO, debug = ngx.DEBUG,
        }) do
            if levels[name] ~= level then wrong[#wrong + 1] = name end
        end
        return {
            now == ngx.now(), time.get_now_ms() == ngx.now() * 1000,
            time.get_updated_now_ms() >= now * 1000,
            time.get_start_time_ms() == ngx.req.start_time() * 1000,
            #wrong,
        }
    """
    with Nginx(CONF, workers=1) as server, server.wire() as wire:
        assert server.run_on(wire, code) == [True, True, True, True, 0]
