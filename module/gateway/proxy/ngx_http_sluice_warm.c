
/*
 * When a worker has mapped an image, it compiles the patterns of its routes
 * and plugins, little by little, so that no request waits for that.  Of those
 * in a delta they are compiled when they are asked for.
 */


#include "ngx_http_sluice_patterns.h"
#include "ngx_http_sluice_warm.h"
#include "ngx_sluice_images.h"


#define NGX_HTTP_SLUICE_WARM_WAIT  1         /* ms, between two turns */


static void ngx_http_sluice_warm_begin(void);
static void ngx_http_sluice_warm_handler(ngx_event_t *e);


static ngx_event_t         ngx_http_sluice_warm_event;
static sluice_core_warm_t  ngx_http_sluice_warm_at;

/* For nginx's debug logs. */
static ngx_connection_t  ngx_http_sluice_warm_none = {
    .fd = (ngx_socket_t) -1
};


void
ngx_http_sluice_warm_init_process(ngx_cycle_t *cycle)
{
    ngx_event_t  *e;

    e = &ngx_http_sluice_warm_event;
    e->handler = ngx_http_sluice_warm_handler;
    e->log = cycle->log;
    e->data = &ngx_http_sluice_warm_none;
    e->cancelable = 1;

    ngx_sluice_images_mapped = ngx_http_sluice_warm_begin;

    /* one is mapped already, where the module of Lua comes before this one */

    if (sluice_images_view()) {
        ngx_http_sluice_warm_begin();
    }
}


static void
ngx_http_sluice_warm_begin(void)
{
    ngx_memzero(&ngx_http_sluice_warm_at, sizeof(sluice_core_warm_t));

    if (!ngx_http_sluice_warm_event.timer_set && !ngx_exiting) {
        ngx_add_timer(&ngx_http_sluice_warm_event, NGX_HTTP_SLUICE_WARM_WAIT);
    }
}


static void
ngx_http_sluice_warm_handler(ngx_event_t *e)
{
    sluice_core_regexes_t     *regexes;
    const sluice_core_view_t  *view;

    regexes = ngx_http_sluice_patterns();

    /* it does not look whether another is published: requests do */

    view = sluice_images_view();

    if (regexes == NULL || view == NULL || ngx_exiting) {
        return;
    }

    if (sluice_core_warm(view, regexes, &ngx_http_sluice_warm_at)
        == SLUICE_CORE_AGAIN)
    {
        ngx_add_timer(e, NGX_HTTP_SLUICE_WARM_WAIT);
    }
}
