
/*
 * The head of an upstream's response, before nginx makes the client's of it
 * (which lines of it: ngx_http_sluice_response_lines.c).
 *
 *     upstream sluice_upstream {
 *         server 0.0.0.1;
 *         sluice_balancer;
 *         sluice_response_head;
 *     }
 *
 * What stock nginx takes as it comes is read as RFC 9110 and 9112 have it:
 *
 *   interim responses (1xx but 101) are skipped; nginx takes the first for the
 *   final one, and waits for its body;
 *
 *   101 is for a client that has asked for WebSocket, and for that alone
 *   (ngx_http_sluice_upgrade.c); nginx makes a tunnel of it for each client
 *   that has sent Upgrade;
 *
 *   headers that Connection names do not go on;
 *
 *   no status line is no response; nginx takes that for HTTP/0.9.
 *
 * And a header that the gateway has set as its own (sluice.header) replaces
 * the upstream's.
 *
 * nginx's proxy module calls u->process_header for each piece that it reads.
 * We stand before its functions, the one for the status line and the one for
 * the lines below it, and look at what they have read when the head is whole.
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_upgrade.h"
#include "ngx_http_sluice_upstream.h"


#define NGX_HTTP_SLUICE_RESPONSE_UPGRADE  426
#define NGX_HTTP_SLUICE_RESPONSE_INTERIM  16  /* before the final response */


typedef ngx_int_t (*ngx_http_sluice_response_step_pt)(ngx_http_request_t *r);


typedef struct {
    ngx_http_sluice_response_step_pt  process_header;  /* nginx's next one */
    ngx_http_sluice_response_step_pt  reinit_request;
    ngx_uint_t                        interim;
    ngx_http_sluice_response_own_t    own;
} ngx_http_sluice_response_ctx_t;


static ngx_http_sluice_response_ctx_t *ngx_http_sluice_response_get_ctx(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_response_wrap(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_response_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_sluice_response_reinit(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_response_process_header(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_response_skip(ngx_http_request_t *r,
    ngx_http_sluice_response_ctx_t *ctx);

extern ngx_module_t  ngx_http_sluice_response_module;


static ngx_command_t  ngx_http_sluice_response_commands[] = {

    { ngx_string("sluice_response_head"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS,
      ngx_http_sluice_upstream_enable,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_response_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_response_wrap,         /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_sluice_upstream_create_conf,  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_response_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_response_module_ctx,  /* module context */
    ngx_http_sluice_response_commands,     /* module directives */
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


ngx_int_t
ngx_http_sluice_response_add_own(ngx_http_request_t *r,
    const ngx_http_sluice_header_line_t *lines, ngx_uint_t n)
{
    ngx_uint_t                        i;
    sluice_header_t                 **own;
    ngx_http_sluice_response_ctx_t   *ctx;

    ctx = ngx_http_sluice_response_get_ctx(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    if (ctx->own.headers.elts == NULL
        && ngx_array_init(&ctx->own.headers, r->pool, 8,
                          sizeof(sluice_header_t *))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    own = ngx_array_push_n(&ctx->own.headers, n);
    if (own == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        own[i] = lines[i].header;
        ctx->own.hashes |= ngx_http_sluice_response_own_bit(own[i]->hash);
    }

    return NGX_OK;
}


static ngx_http_sluice_response_ctx_t *
ngx_http_sluice_response_get_ctx(ngx_http_request_t *r)
{
    ngx_http_sluice_response_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_sluice_response_module);

    if (ctx == NULL) {
        ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_sluice_response_ctx_t));
        if (ctx == NULL) {
            return NULL;
        }

        ngx_http_set_ctx(r, ctx, ngx_http_sluice_response_module);
    }

    return ctx;
}


static ngx_int_t
ngx_http_sluice_response_wrap(ngx_conf_t *cf)
{
    return ngx_http_sluice_upstream_wrap(cf, &ngx_http_sluice_response_module,
                                         ngx_http_sluice_response_init);
}


static ngx_int_t
ngx_http_sluice_response_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_upstream_t              *u;
    ngx_http_sluice_response_ctx_t   *ctx;
    ngx_http_sluice_upstream_conf_t  *ucf;

    ctx = ngx_http_sluice_response_get_ctx(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    u = r->upstream;

    ctx->process_header = u->process_header;
    ctx->reinit_request = u->reinit_request;
    ctx->interim = 0;

    u->process_header = ngx_http_sluice_response_process_header;
    u->reinit_request = ngx_http_sluice_response_reinit;

    ucf = ngx_http_conf_upstream_srv_conf(us, ngx_http_sluice_response_module);

    return ucf->init_peer(r, us);
}


/* For the next try, or the next head of this one. */

static ngx_int_t
ngx_http_sluice_response_reinit(ngx_http_request_t *r)
{
    ngx_http_upstream_t             *u;
    ngx_http_sluice_response_ctx_t  *ctx;

    u = r->upstream;
    ctx = ngx_http_get_module_ctx(r, ngx_http_sluice_response_module);

    if (ctx->reinit_request(r) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->process_header = u->process_header;
    ctx->interim = 0;

    u->process_header = ngx_http_sluice_response_process_header;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_response_process_header(ngx_http_request_t *r)
{
    ngx_int_t                        rc;
    ngx_uint_t                       version;
    ngx_http_upstream_t             *u;
    ngx_http_sluice_response_ctx_t  *ctx;

    u = r->upstream;
    ctx = ngx_http_get_module_ctx(r, ngx_http_sluice_response_module);

    version = r->http_version;

    for ( ;; ) {

        rc = ctx->process_header(r);

        if (u->process_header != ngx_http_sluice_response_process_header) {
            ctx->process_header = u->process_header;
            u->process_header = ngx_http_sluice_response_process_header;
        }

        if (rc != NGX_OK) {
            return rc;
        }

        if (u->headers_in.status_n < NGX_HTTP_CONTINUE) {

            /* nginx has logged it, and would answer by HTTP/0.9 as well */

            r->http_version = version;
            return NGX_HTTP_UPSTREAM_INVALID_HEADER;
        }

        if (u->headers_in.status_n >= NGX_HTTP_OK) {

            /* its line of Upgrade has to be there (RFC 9110, 15.5.22) */

            if (u->headers_in.status_n == NGX_HTTP_SLUICE_RESPONSE_UPGRADE
                && ngx_http_sluice_upgrade_required(r) != NGX_OK)
            {
                return NGX_ERROR;
            }

            return ngx_http_sluice_response_drop_lines(r, &ctx->own);
        }

        if (u->headers_in.status_n == NGX_HTTP_SWITCHING_PROTOCOLS) {
            rc = ngx_http_sluice_upgrade_switch(r);

            if (rc == NGX_OK) {
                return ngx_http_sluice_response_drop_lines(r, &ctx->own);
            }

            return rc == NGX_ERROR ? rc : NGX_HTTP_UPSTREAM_INVALID_HEADER;
        }

        if (ngx_http_sluice_response_skip(r, ctx) != NGX_OK) {
            return NGX_HTTP_UPSTREAM_INVALID_HEADER;
        }
    }
}


/* Begins anew with what came behind an interim response. */

static ngx_int_t
ngx_http_sluice_response_skip(ngx_http_request_t *r,
    ngx_http_sluice_response_ctx_t *ctx)
{
    ngx_buf_t            *b;
    ngx_uint_t            interim;
    ngx_http_upstream_t  *u;

    interim = ctx->interim + 1;

    if (interim > NGX_HTTP_SLUICE_RESPONSE_INTERIM) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "upstream sent more than %d interim responses",
                      NGX_HTTP_SLUICE_RESPONSE_INTERIM);
        return NGX_ERROR;
    }

    u = r->upstream;

    if (ngx_http_sluice_response_reinit(r) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->interim = interim;

    /* all of the buffer is the next head's; nginx has copied what it keeps */

    b = &u->buffer;

    b->last = ngx_movemem(b->start, b->pos, b->last - b->pos);
    b->pos = b->start;

    /* as ngx_http_upstream_reinit() */

    u->keepalive = 0;
    u->upgrade = 0;
    u->state->status = 0;

    ngx_memzero(&u->headers_in, sizeof(ngx_http_upstream_headers_in_t));
    u->headers_in.content_length_n = -1;
    u->headers_in.last_modified_time = -1;

    if (ngx_list_init(&u->headers_in.headers, r->pool, 8,
                      sizeof(ngx_table_elt_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_list_init(&u->headers_in.trailers, r->pool, 2,
                         sizeof(ngx_table_elt_t));
}
