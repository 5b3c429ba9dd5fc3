
/*
 * The access phase, for a request whose plugins need no Lua in it.
 *
 * Where Lua runs there (sluice_location lua), it calls the same functions.
 */


#include "ngx_http_sluice_access.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_destination.h"
#include "ngx_http_sluice_location.h"
#include "ngx_http_sluice_peer.h"
#include "ngx_http_sluice_phase.h"
#include "ngx_http_sluice_route.h"
#include "ngx_http_sluice_target.h"
#include "ngx_http_sluice_turn.h"
#include "ngx_http_sluice_upgrade.h"


typedef struct {
    ngx_http_complex_value_t  *scheme;
    ngx_http_complex_value_t  *host;
} ngx_http_sluice_access_conf_t;


static ngx_int_t ngx_http_sluice_access_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_access_require_https(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal);
static ngx_int_t ngx_http_sluice_access_ask_upgrade(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal);
static ngx_int_t ngx_http_sluice_access_redirect(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal);
static ngx_int_t ngx_http_sluice_access_address(ngx_connection_t *c,
    u_char *address, ngx_str_t *host);
static void *ngx_http_sluice_access_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_access_init(ngx_conf_t *cf);


extern ngx_module_t  ngx_http_sluice_access_module;


/* by gateway/image/flags.lua's numbers */

static ngx_uint_t  ngx_http_sluice_access_redirects[] = {
    426, 301, 302, 307, 308
};


static ngx_command_t  ngx_http_sluice_access_commands[] = {

    /* what the client has asked for, as far as it is believed */

    { ngx_string("sluice_asked_scheme"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sluice_access_conf_t, scheme),
      NULL },

    { ngx_string("sluice_asked_host"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_sluice_access_conf_t, host),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_access_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_access_init,           /* postconfiguration */

    ngx_http_sluice_access_create_conf,    /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_access_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_access_module_ctx,    /* module context */
    ngx_http_sluice_access_commands,       /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_sluice_access_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_http_sluice_ctx_t      *ctx;
    ngx_http_sluice_refusal_t   refusal;

    if (ngx_http_sluice_location_kind(r) != NGX_HTTP_SLUICE_LOCATION_NATIVE) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_sluice_ctx(r);

    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* a plugin has sent it back to the beginning */

    if (r->internal) {

        rc = ngx_http_sluice_route(r, ctx, &refusal);

        if (rc == NGX_AGAIN) {
            return ngx_http_sluice_turn(r, ctx);
        }

        if (rc != NGX_OK) {
            return ngx_http_sluice_refuse(r, &refusal);
        }

        if (ngx_http_sluice_location_kind(r)
            != NGX_HTTP_SLUICE_LOCATION_NATIVE)
        {
            return NGX_DECLINED;
        }
    }

    if (ngx_http_sluice_access_enter(r, ctx, &refusal) != NGX_OK) {
        return ngx_http_sluice_refuse(r, &refusal);
    }

    rc = ngx_http_sluice_chain_access(r, ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_sluice_access_leave(r, ctx, &refusal) != NGX_OK) {
        return ngx_http_sluice_refuse(r, &refusal);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_access_enter(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal)
{
    if (ctx->route == SLUICE_CORE_NOBODY) {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_NOT_FOUND,
                                       "no Route matched with those values");
    }

    if (ctx->route_flags & NGX_HTTP_SLUICE_ROUTE_HTTPS_ONLY) {
        return ngx_http_sluice_access_require_https(r, ctx, refusal);
    }

    return NGX_OK;
}


/* NGX_OK: the client has. */

static ngx_int_t
ngx_http_sluice_access_require_https(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal)
{
    ngx_str_t                       scheme;
    ngx_uint_t                      code;
    ngx_http_sluice_access_conf_t  *conf;

    conf = ngx_http_get_module_main_conf(r, ngx_http_sluice_access_module);

    if (conf->scheme == NULL
        || conf->host == NULL
        || ngx_http_complex_value(r, conf->scheme, &scheme) != NGX_OK)
    {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);
    }

    if (scheme.len == 5 && ngx_strncmp(scheme.data, "https", 5) == 0) {
        return NGX_OK;
    }

    code = ctx->route_flags / NGX_HTTP_SLUICE_ROUTE_REDIRECT & 7;

    if (code == 0 || code >= sizeof(ngx_http_sluice_access_redirects)
                             / sizeof(ngx_uint_t))
    {
        return ngx_http_sluice_access_ask_upgrade(r, refusal);
    }

    refusal->status = ngx_http_sluice_access_redirects[code];

    return ngx_http_sluice_access_redirect(r, refusal);
}


static ngx_int_t
ngx_http_sluice_access_ask_upgrade(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal)
{
    static ngx_str_t  protocols = ngx_string("TLS/1.2, HTTP/1.1");

    if (ngx_http_sluice_upgrade_require(r, &protocols) != NGX_OK) {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);
    }

    return ngx_http_sluice_refusal(refusal,
                                   ngx_http_sluice_access_redirects[0],
                                   "Please use HTTPS protocol");
}


static ngx_int_t
ngx_http_sluice_access_redirect(ngx_http_request_t *r,
    ngx_http_sluice_refusal_t *refusal)
{
    u_char                         *p, address[NGX_SOCKADDR_STRLEN + 2];
    ngx_int_t                       rc;
    ngx_str_t                       host;
    ngx_http_sluice_access_conf_t  *conf;

    conf = ngx_http_get_module_main_conf(r, ngx_http_sluice_access_module);
    p = NULL;

    rc = ngx_http_complex_value(r, conf->host, &host);

    if (rc == NGX_OK && host.len == 0) {
        rc = ngx_http_sluice_access_address(r->connection, address, &host);
    }

    if (rc == NGX_OK) {
        p = ngx_pnalloc(r->pool, sizeof("https://") - 1 + host.len
                                 + r->unparsed_uri.len);
    }

    if (p == NULL) {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                       NULL);
    }

    ngx_str_null(&refusal->message);

    refusal->location.data = p;
    refusal->location.len = ngx_sprintf(p, "https://%V%V", &host,
                                        &r->unparsed_uri)
                            - p;

    return NGX_DECLINED;
}


/* the host of a request that names none: the address that it came to */

static ngx_int_t
ngx_http_sluice_access_address(ngx_connection_t *c, u_char *address,
    ngx_str_t *host)
{
    host->data = address + 1;
    host->len = NGX_SOCKADDR_STRLEN;

    if (ngx_connection_local_sockaddr(c, host, 0) != NGX_OK) {
        return NGX_ERROR;
    }

#if (NGX_HAVE_INET6)

    if (c->local_sockaddr->sa_family == AF_INET6) {
        address[0] = '[';
        address[host->len + 1] = ']';

        host->data = address;
        host->len += 2;
    }

#endif

    return NGX_OK;
}


ngx_int_t
ngx_http_sluice_access_leave(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_refusal_t *refusal)
{
    ngx_int_t                       rc;
    ngx_http_sluice_destination_t  *destination;

    destination = ctx->destination;

    if (destination == NULL) {
        return ngx_http_sluice_refusal(refusal, NGX_HTTP_SERVICE_UNAVAILABLE,
                                       "no Service found with those values");
    }

    ngx_str_null(&refusal->message);

    if (destination->unusable) {
        ngx_str_set(&refusal->message,
                    "a certificate of the service cannot be used");

    } else if (destination->rotation->count) {

        rc = ngx_http_sluice_target_set(r, ctx);

        if (rc != NGX_OK) {
            return ngx_http_sluice_refusal(refusal, rc, NULL);
        }

        rc = ngx_http_sluice_peer_begin(r, ctx);

        if (rc == NGX_OK) {
            r->request_body_no_buffering =
                (ctx->route_flags & NGX_HTTP_SLUICE_ROUTE_STREAM_REQUEST) != 0;
            return NGX_OK;
        }

    } else if (destination->rotation->upstream) {

        ngx_http_sluice_rotation_want(destination->rotation);

        /* Kong's words, here and below */

        ngx_str_set(&refusal->message,
                    "failure to get a peer from the ring-balancer");

    } else {
        ngx_http_sluice_rotation_want(destination->rotation);
        ngx_str_set(&refusal->message, "name resolution failed");
    }

    refusal->status = NGX_HTTP_SERVICE_UNAVAILABLE;
    ngx_str_null(&refusal->location);

    return NGX_DECLINED;
}


static void *
ngx_http_sluice_access_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_access_conf_t));
}


static ngx_int_t
ngx_http_sluice_access_init(ngx_conf_t *cf)
{
    return ngx_http_sluice_phase_add(cf, NGX_HTTP_ACCESS_PHASE,
                                     ngx_http_sluice_access_handler);
}
