
/*
 * The steps of a request, in the order in which they are taken: in no other
 * place is it said.  The order is security:
 *
 *   post_read        what a client says in the gateway's name is taken away
 *                    before anything reads it;
 *   server_rewrite   a request is made to have one host, one path and no
 *                    hop-by-hop headers, or is refused, before it is matched;
 *                    then it gets its route, and the location with the phases
 *                    that its plugins need.  nginx looks for no location by
 *                    the URI;
 *   access           plugins, in the order of their priority, then the
 *                    upstream's URI and the first peer.  Where plugins are in
 *                    Lua, access_by_lua of the location does this, by the
 *                    same functions (gateway/proxy/phases.lua);
 *   content          proxy_pass, with three callbacks of ours: the peer (its
 *                    request's head is written then), the response's head,
 *                    the pool of connections (module/gateway/upstream);
 *   header filter    ngx_http_sluice_response_header.c, a module of its own
 *                    since its place among nginx's is said in module/config;
 *   log              native plugins, then what is counted.  nginx's access
 *                    log comes before.
 *
 * Ours come before those of all modules that are loaded earlier, but in the
 * log phase.  test/unit/steps_spec.lua has the same table.
 */


#include "ngx_http_sluice_access.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_http2.h"
#include "ngx_http_sluice_metrics.h"
#include "ngx_http_sluice_route.h"
#include "ngx_http_sluice_sanitize.h"
#include "ngx_http_sluice_spoofed_headers.h"
#include "ngx_http_sluice_steps.h"


typedef struct {
    ngx_http_phases       phase;
    ngx_http_handler_pt   handler;
} ngx_http_sluice_steps_t;


static ngx_int_t ngx_http_sluice_steps_add_one(ngx_conf_t *cf,
    ngx_http_sluice_steps_t *step);


static ngx_http_sluice_steps_t  ngx_http_sluice_steps[] = {
    { NGX_HTTP_POST_READ_PHASE,      ngx_http_sluice_spoofed_headers_handler },
    { NGX_HTTP_SERVER_REWRITE_PHASE, ngx_http_sluice_sanitize_handler },
    { NGX_HTTP_SERVER_REWRITE_PHASE, ngx_http_sluice_route_handler },
    { NGX_HTTP_ACCESS_PHASE,         ngx_http_sluice_access_handler },
    { NGX_HTTP_LOG_PHASE,            ngx_http_sluice_late_log_handler },
    { NGX_HTTP_LOG_PHASE,            ngx_http_sluice_metrics_handler },
    { NGX_HTTP_LOG_PHASE,            ngx_http_sluice_http2_handler }
};

#define NGX_HTTP_SLUICE_STEPS                                                 \
    (sizeof(ngx_http_sluice_steps) / sizeof(ngx_http_sluice_steps_t))


/*
 * nginx runs handlers of the log phase as they were added, those of the other
 * phases from the last to the first.
 */

ngx_int_t
ngx_http_sluice_steps_add(ngx_conf_t *cf)
{
    ngx_uint_t                i;
    ngx_http_sluice_steps_t  *step, *reverse;

    for (i = 0; i < NGX_HTTP_SLUICE_STEPS; i++) {
        step = &ngx_http_sluice_steps[i];
        reverse = &ngx_http_sluice_steps[NGX_HTTP_SLUICE_STEPS - 1 - i];

        if (step->phase == NGX_HTTP_LOG_PHASE
            && ngx_http_sluice_steps_add_one(cf, step) != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (reverse->phase != NGX_HTTP_LOG_PHASE
            && ngx_http_sluice_steps_add_one(cf, reverse) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_steps_add_one(ngx_conf_t *cf, ngx_http_sluice_steps_t *step)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[step->phase].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = step->handler;

    return NGX_OK;
}
