
/*
 * The gateway's one http module as nginx sees it: the parts that its rooms
 * have in a configuration, joined (request/ngx_http_sluice_module.h has how).
 */


#include "ngx_http_sluice_access.h"
#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_body.h"
#include "ngx_http_sluice_buffered.h"
#include "ngx_http_sluice_control.h"
#include "ngx_http_sluice_crl.h"
#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_error_page.h"
#include "ngx_http_sluice_head.h"
#include "ngx_http_sluice_http2.h"
#include "ngx_http_sluice_kong_variables.h"
#include "ngx_http_sluice_location.h"
#include "ngx_http_sluice_log.h"
#include "ngx_http_sluice_metrics.h"
#include "ngx_http_sluice_module.h"
#include "ngx_http_sluice_peer.h"
#include "ngx_http_sluice_peer_try.h"
#include "ngx_http_sluice_proxy_protocol.h"
#include "ngx_http_sluice_route.h"
#include "ngx_http_sluice_interim.h"
#include "ngx_http_sluice_sanitize.h"
#include "ngx_http_sluice_spoofed_headers.h"
#include "ngx_http_sluice_steps.h"
#include "ngx_http_sluice_tls.h"
#include "ngx_http_sluice_upstream_tls.h"
#include "ngx_http_sluice_upstream_uri.h"
#include "ngx_http_sluice_variables.h"
#include "ngx_http_sluice_via.h"
#include "ngx_http_sluice_warm.h"
#include "ngx_sluice_images.h"


typedef struct {
    ngx_http_sluice_access_conf_t        access;
    ngx_http_sluice_answer_conf_t        answer;
    ngx_http_sluice_buffered_conf_t      buffered;
    ngx_http_sluice_crl_conf_t           crl;
    ngx_http_sluice_ctx_conf_t           ctx;
    ngx_http_sluice_http2_conf_t         http2;
    ngx_http_sluice_peer_host_conf_t     peer_host;
    ngx_http_sluice_upstream_tls_conf_t  upstream_tls;
    ngx_http_sluice_upstream_uri_conf_t  upstream_uri;
    ngx_http_sluice_via_conf_t           via;
} ngx_http_sluice_main_conf_t;


typedef struct {
    ngx_http_sluice_control_conf_t          control;
    ngx_http_sluice_head_conf_t             head;
    ngx_http_sluice_location_srv_conf_t     location_srv;
    ngx_http_sluice_metrics_conf_t          metrics;
    ngx_http_sluice_peer_conf_t             peer;
    ngx_http_sluice_route_conf_t            route;
    ngx_http_sluice_interim_conf_t          interim;
    ngx_http_sluice_sanitize_conf_t         sanitize;
    ngx_http_sluice_spoofed_headers_conf_t  spoofed_headers;
    ngx_http_sluice_tls_conf_t              tls;
} ngx_http_sluice_srv_conf_t;


typedef struct {
    ngx_http_sluice_location_loc_conf_t   location_loc;
} ngx_http_sluice_loc_conf_t;


#define main_at(part)  offsetof(ngx_http_sluice_main_conf_t, part)
#define srv_at(part)   offsetof(ngx_http_sluice_srv_conf_t, part)
#define loc_at(part)   offsetof(ngx_http_sluice_loc_conf_t, part)


static ngx_int_t ngx_http_sluice_module_preconfigure(ngx_conf_t *cf);
static void *ngx_http_sluice_module_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_sluice_module_create_srv_conf(ngx_conf_t *cf);
static char *ngx_http_sluice_module_merge_srv_conf(ngx_conf_t *cf,
    void *parent, void *child);
static void *ngx_http_sluice_module_create_loc_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_module_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_module_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_http_sluice_module_init_process(ngx_cycle_t *cycle);


const size_t  ngx_http_sluice_access_at = main_at(access);
const size_t  ngx_http_sluice_answer_at = main_at(answer);
const size_t  ngx_http_sluice_buffered_at = main_at(buffered);
const size_t  ngx_http_sluice_crl_at = main_at(crl);
const size_t  ngx_http_sluice_ctx_at = main_at(ctx);
const size_t  ngx_http_sluice_http2_at = main_at(http2);
const size_t  ngx_http_sluice_peer_host_at = main_at(peer_host);
const size_t  ngx_http_sluice_upstream_tls_at = main_at(upstream_tls);
const size_t  ngx_http_sluice_upstream_uri_at = main_at(upstream_uri);
const size_t  ngx_http_sluice_via_at = main_at(via);

const size_t  ngx_http_sluice_control_at = srv_at(control);
const size_t  ngx_http_sluice_head_at = srv_at(head);
const size_t  ngx_http_sluice_location_srv_at = srv_at(location_srv);
const size_t  ngx_http_sluice_metrics_at = srv_at(metrics);
const size_t  ngx_http_sluice_peer_at = srv_at(peer);
const size_t  ngx_http_sluice_route_at = srv_at(route);
const size_t  ngx_http_sluice_interim_at = srv_at(interim);
const size_t  ngx_http_sluice_sanitize_at = srv_at(sanitize);
const size_t  ngx_http_sluice_spoofed_headers_at = srv_at(spoofed_headers);
const size_t  ngx_http_sluice_tls_at = srv_at(tls);

const size_t  ngx_http_sluice_location_loc_at = loc_at(location_loc);


static ngx_command_t  ngx_http_sluice_module_commands[] = {

    NGX_HTTP_SLUICE_ACCESS_DIRECTIVES(main_at(access)),
    NGX_HTTP_SLUICE_ANSWER_DIRECTIVES(main_at(answer)),
    NGX_HTTP_SLUICE_BUFFERED_DIRECTIVES(main_at(buffered)),
    NGX_HTTP_SLUICE_CRL_DIRECTIVES(main_at(crl)),
    NGX_HTTP_SLUICE_HTTP2_DIRECTIVES(main_at(http2)),
    NGX_HTTP_SLUICE_UPSTREAM_TLS_DIRECTIVES(main_at(upstream_tls)),
    NGX_HTTP_SLUICE_VIA_DIRECTIVES(main_at(via)),

    NGX_HTTP_SLUICE_CONTROL_DIRECTIVES(srv_at(control)),
    NGX_HTTP_SLUICE_HEAD_DIRECTIVES(srv_at(head)),
    NGX_HTTP_SLUICE_METRICS_DIRECTIVES(srv_at(metrics)),
    NGX_HTTP_SLUICE_PEER_DIRECTIVES(srv_at(peer)),
    NGX_HTTP_SLUICE_ROUTE_DIRECTIVES(srv_at(route)),
    NGX_HTTP_SLUICE_INTERIM_DIRECTIVES(srv_at(interim)),
    NGX_HTTP_SLUICE_SANITIZE_DIRECTIVES(srv_at(sanitize)),
    NGX_HTTP_SLUICE_SPOOFED_HEADERS_DIRECTIVES(srv_at(spoofed_headers)),
    NGX_HTTP_SLUICE_TLS_DIRECTIVES(srv_at(tls)),

    NGX_HTTP_SLUICE_ERROR_PAGE_DIRECTIVES(0),
    NGX_HTTP_SLUICE_LOCATION_DIRECTIVES(loc_at(location_loc)),

    ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_module_ctx = {
    ngx_http_sluice_module_preconfigure,   /* preconfiguration */
    ngx_http_sluice_module_init,           /* postconfiguration */

    ngx_http_sluice_module_create_main_conf,  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_sluice_module_create_srv_conf,  /* create server configuration */
    ngx_http_sluice_module_merge_srv_conf,  /* merge server configuration */

    ngx_http_sluice_module_create_loc_conf,  /* create location config. */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_module_ctx,           /* module context */
    ngx_http_sluice_module_commands,       /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_sluice_module_init_module,    /* init module */
    ngx_http_sluice_module_init_process,   /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_sluice_module_preconfigure(ngx_conf_t *cf)
{
    ngx_http_sluice_main_conf_t  *conf;

    conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sluice_module);

    if (ngx_http_sluice_ctx_add_variable(cf, &conf->ctx) != NGX_OK
        || ngx_http_sluice_variables_add(cf) != NGX_OK
        || ngx_http_sluice_kong_variables_add(cf) != NGX_OK
        || ngx_http_sluice_peer_host_add(cf, &conf->peer_host) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_sluice_log_add_variables(cf);
}


static void *
ngx_http_sluice_module_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_sluice_main_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_main_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->answer.default_format = SLUICE_ANSWER_TEXT;
    conf->buffered.max = NGX_CONF_UNSET_SIZE;

    return conf;
}


static void *
ngx_http_sluice_module_create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_sluice_srv_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_srv_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->metrics.enabled = NGX_CONF_UNSET;
    ngx_http_sluice_pool_init(&conf->peer.pool);
    conf->route.enabled = NGX_CONF_UNSET;
    conf->interim.enabled = NGX_CONF_UNSET;
    conf->sanitize.check = NGX_CONF_UNSET;
    conf->sanitize.reject_traversal = NGX_CONF_UNSET;
    conf->tls.enable = NGX_CONF_UNSET;

    return conf;
}


static char *
ngx_http_sluice_module_merge_srv_conf(ngx_conf_t *cf, void *parent,
    void *child)
{
    ngx_http_sluice_srv_conf_t  *prev = parent;
    ngx_http_sluice_srv_conf_t  *conf = child;

    ngx_conf_merge_value(conf->metrics.enabled, prev->metrics.enabled, 0);
    ngx_conf_merge_value(conf->route.enabled, prev->route.enabled, 0);
    ngx_conf_merge_value(conf->interim.enabled, prev->interim.enabled, 0);
    ngx_conf_merge_value(conf->sanitize.check, prev->sanitize.check, 0);
    ngx_conf_merge_value(conf->sanitize.reject_traversal,
                         prev->sanitize.reject_traversal, 0);
    ngx_conf_merge_value(conf->tls.enable, prev->tls.enable, 0);

    return NGX_CONF_OK;
}


static void *
ngx_http_sluice_module_create_loc_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_loc_conf_t));
}


static ngx_int_t
ngx_http_sluice_module_init(ngx_conf_t *cf)
{
    ngx_http_sluice_main_conf_t  *conf;

    conf = ngx_http_conf_get_module_main_conf(cf, ngx_http_sluice_module);

    ngx_http_sluice_http2_init(cf, &conf->http2);
    ngx_http_sluice_peer_init_conf(cf);
    ngx_http_sluice_body_bound_init();
    ngx_http_sluice_buffered_init();
    ngx_conf_init_size_value(conf->buffered.max, NGX_HTTP_SLUICE_BUFFERED_MAX);

    if (ngx_http_sluice_tls_init(cf) != NGX_OK
        || ngx_http_sluice_answer_init(cf, &conf->answer) != NGX_OK
        || ngx_http_sluice_upstream_uri_init(cf, &conf->upstream_uri)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_sluice_steps_add(cf);
}


static ngx_int_t
ngx_http_sluice_module_init_module(ngx_cycle_t *cycle)
{
    ngx_http_sluice_main_conf_t  *conf;

    conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_sluice_module);

    if (conf) {
        ngx_http_sluice_crl_init_module(&conf->crl);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_module_init_process(ngx_cycle_t *cycle)
{
    ngx_http_sluice_main_conf_t  *conf;

    conf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_sluice_module);

    if (conf == NULL) {
        return NGX_OK;
    }

    /* before others have put themselves in the place of nginx's handler */

    ngx_http_sluice_proxy_protocol_init_process(cycle);

    if (ngx_http_sluice_variables_init_process(cycle, &conf->via) != NGX_OK) {
        return NGX_ERROR;
    }

    /* behind the error log's, whose handlers of connections it calls */

    ngx_http_sluice_http2_init_process(cycle, &conf->http2);
    ngx_http_sluice_log_init_process(cycle);

    /* the control worker, which has a page, serves no requests */

    if (ngx_process == NGX_PROCESS_WORKER
        && (ngx_worker || ngx_sluice_images_page == NULL))
    {
        ngx_http_sluice_warm_init_process(cycle);
    }

    return NGX_OK;
}
