
/*
 * The first peer of a request, without Lua.
 *
 *     upstream sluice_http {
 *         server 0.0.0.1;
 *         balancer_by_lua_block { ... }
 *         sluice_first_peer;
 *     }
 *
 * The access phase is in Lua anyway and leaves the peer here.  The balancer is
 * asked only after a try has failed, and does not know the request before.  To
 * enter Lua once more, and to parse and print the peer's address, takes a
 * tenth of all instructions that a worker spends on a proxied request.
 *
 * A request that comes without a peer is the balancer's from the beginning.
 */


#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_upstream.h"


/* of a request; a copy, since the configuration may go before it */

typedef struct {
    sluice_peer_t                      peer;
    ngx_str_t                          name;
    ngx_uint_t                         tries;
    sluice_peer_timeouts_t             timeouts;

    ngx_http_request_t                *request;
    ngx_http_upstream_srv_conf_t      *upstream;

    /* the balancer's; get is NULL until it is asked */

    void                              *data;
    ngx_event_get_peer_pt              get;
    ngx_event_free_peer_pt             free;

#if (NGX_HTTP_SSL)
    ngx_event_set_peer_session_pt      set_session;
    ngx_event_save_peer_session_pt     save_session;
#endif

    unsigned                           given:1;
} ngx_http_sluice_peer_ctx_t;


static ngx_int_t ngx_http_sluice_peer_wrap(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_peer_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_sluice_peer_time(ngx_http_upstream_t *u,
    ngx_http_sluice_peer_ctx_t *ctx);
static ngx_int_t ngx_http_sluice_peer_get(ngx_peer_connection_t *pc,
    void *data);
static ngx_int_t ngx_http_sluice_peer_ask(ngx_http_sluice_peer_ctx_t *ctx);
static void ngx_http_sluice_peer_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);

#if (NGX_HTTP_SSL)
static ngx_int_t ngx_http_sluice_peer_set_session(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_sluice_peer_save_session(ngx_peer_connection_t *pc,
    void *data);
#endif

extern ngx_module_t  ngx_http_sluice_peer_module;


static ngx_command_t  ngx_http_sluice_peer_commands[] = {

    { ngx_string("sluice_first_peer"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS,
      ngx_http_sluice_upstream_enable,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_peer_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_peer_wrap,             /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_sluice_upstream_create_conf,  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_peer_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_peer_module_ctx,      /* module context */
    ngx_http_sluice_peer_commands,         /* module directives */
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


/*
 * NGX_DECLINED: the text is no address and port.  The request's memory is used
 * once for each peer of a configuration, not for each request.
 */

int
sluice_peer_parse(ngx_http_request_t *r, u_char *text, size_t length,
    sluice_peer_t *peer)
{
    ngx_int_t   rc;
    ngx_addr_t  addr;

    rc = ngx_parse_addr_port(r->pool, &addr, text, length);

    if (rc != NGX_OK) {
        return rc;
    }

    if (addr.socklen > (socklen_t) sizeof(peer->sockaddr)
        || ngx_inet_get_port(addr.sockaddr) == 0)
    {
        return NGX_DECLINED;
    }

    ngx_memcpy(peer->sockaddr, addr.sockaddr, addr.socklen);

    peer->socklen = (uint32_t) addr.socklen;
    peer->length = (uint32_t) ngx_sock_ntop(addr.sockaddr, addr.socklen,
                                            peer->text,
                                            NGX_HTTP_SLUICE_PEER_TEXT, 1);

    return NGX_OK;
}


/* To be called in the access phase; the last call counts. */

int
sluice_peer_use(ngx_http_request_t *r, const sluice_peer_t *peer,
    uint32_t tries, const sluice_peer_timeouts_t *timeouts)
{
    ngx_http_sluice_peer_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_sluice_peer_module);

    if (ctx == NULL) {
        ctx = ngx_palloc(r->pool, sizeof(ngx_http_sluice_peer_ctx_t));
        if (ctx == NULL) {
            return NGX_ERROR;
        }

        ngx_http_set_ctx(r, ctx, ngx_http_sluice_peer_module);
    }

    ctx->peer = *peer;
    ctx->name.data = ctx->peer.text;
    ctx->name.len = peer->length;
    ctx->tries = tries;
    ctx->timeouts = *timeouts;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_wrap(ngx_conf_t *cf)
{
    return ngx_http_sluice_upstream_wrap(cf, &ngx_http_sluice_peer_module,
                                         ngx_http_sluice_peer_init);
}


static ngx_int_t
ngx_http_sluice_peer_init(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_peer_connection_t            *pc;
    ngx_http_sluice_peer_ctx_t       *ctx;
    ngx_http_sluice_upstream_conf_t  *ucf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_sluice_peer_module);

    if (ctx == NULL) {
        ucf = ngx_http_conf_upstream_srv_conf(us, ngx_http_sluice_peer_module);
        return ucf->init_peer(r, us);
    }

    ctx->request = r;
    ctx->upstream = us;
    ctx->get = NULL;
    ctx->given = 0;

    pc = &r->upstream->peer;

    pc->data = ctx;
    pc->get = ngx_http_sluice_peer_get;
    pc->free = ngx_http_sluice_peer_free;
    pc->tries = ctx->tries;

#if (NGX_HTTP_SSL)
    pc->set_session = ngx_http_sluice_peer_set_session;
    pc->save_session = ngx_http_sluice_peer_save_session;
#endif

    return ngx_http_sluice_peer_time(r->upstream, ctx);
}


/* nginx reads timeouts from the location's configuration: hence a copy. */

static ngx_int_t
ngx_http_sluice_peer_time(ngx_http_upstream_t *u,
    ngx_http_sluice_peer_ctx_t *ctx)
{
    sluice_peer_timeouts_t    *t;
#if (HAVE_NGX_UPSTREAM_TIMEOUT_FIELDS)
    ngx_http_upstream_t       *to = u;
#else
    ngx_http_upstream_conf_t  *to;
#endif

    t = &ctx->timeouts;

    if (t->connect == 0 && t->send == 0 && t->read == 0) {
        return NGX_OK;
    }

#if !(HAVE_NGX_UPSTREAM_TIMEOUT_FIELDS)

    to = ngx_palloc(ctx->request->pool, sizeof(ngx_http_upstream_conf_t));
    if (to == NULL) {
        return NGX_ERROR;
    }

    *to = *u->conf;
    u->conf = to;

#endif

    if (t->connect) {
        to->connect_timeout = t->connect;
    }

    if (t->send) {
        to->send_timeout = t->send;
    }

    if (t->read) {
        to->read_timeout = t->read;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_get(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_ctx_t  *ctx = data;

    if (!ctx->given) {
        ctx->given = 1;

        pc->sockaddr = (struct sockaddr *) ctx->peer.sockaddr;
        pc->socklen = (socklen_t) ctx->peer.socklen;
        pc->name = &ctx->name;
        pc->cached = 0;
        pc->connection = NULL;

        return NGX_OK;
    }

    if (ctx->get == NULL && ngx_http_sluice_peer_ask(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    return ctx->get(pc, ctx->data);
}


/*
 * Makes the request the balancer's as well.  What it writes into the
 * connection is kept here: by now that is another's, who asks us (the pool).
 */

static ngx_int_t
ngx_http_sluice_peer_ask(ngx_http_sluice_peer_ctx_t *ctx)
{
    ngx_int_t                         rc;
    ngx_peer_connection_t            *pc, ours;
    ngx_http_sluice_upstream_conf_t  *ucf;

    ucf = ngx_http_conf_upstream_srv_conf(ctx->upstream,
                                          ngx_http_sluice_peer_module);
    pc = &ctx->request->upstream->peer;
    ours = *pc;

    /* what is there, nginx's round robin would take for its own */
    pc->data = NULL;

    rc = ucf->init_peer(ctx->request, ctx->upstream);

    if (rc == NGX_OK) {
        ctx->data = pc->data;
        ctx->get = pc->get;
        ctx->free = pc->free;

#if (NGX_HTTP_SSL)
        ctx->set_session = pc->set_session;
        ctx->save_session = pc->save_session;
#endif
    }

    *pc = ours;

    return rc;
}


static void
ngx_http_sluice_peer_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_sluice_peer_ctx_t  *ctx = data;

    if (ctx->get) {
        ctx->free(pc, ctx->data, state);

    } else if (pc->tries) {
        pc->tries--;
    }
}


#if (NGX_HTTP_SSL)

/* Sessions are not kept for the first peer, as the Lua module keeps none. */

static ngx_int_t
ngx_http_sluice_peer_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_ctx_t  *ctx = data;

    return ctx->get ? ctx->set_session(pc, ctx->data) : NGX_OK;
}


static void
ngx_http_sluice_peer_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_peer_ctx_t  *ctx = data;

    if (ctx->get) {
        ctx->save_session(pc, ctx->data);
    }
}

#endif
