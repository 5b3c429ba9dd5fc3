
/*
 * Connections to upstreams are kept for later requests.
 *
 *     upstream sluice_upstream {
 *         server 0.0.0.1;
 *         sluice_balancer;
 *         sluice_keepalive 512 requests=10000 timeout=60s;
 *     }
 *
 * As nginx's keepalive, with its limits and its conditions; three things
 * differ.
 *
 *   A connection is taken by who asks for the same address with the same TLS
 *   identity (ngx_http_sluice_pool.h).  nginx looks at the address alone: a
 *   block's connections may then be used for another name than the one that
 *   was sent and verified.
 *
 *   It is found by a hash.
 *
 *   What TLS has taken from the socket and nobody has read ends a connection,
 *   as bytes in the socket do: it would be read as the next response.  So does
 *   TLS's own goodbye.
 */


#include "ngx_http_sluice_pool.h"
#include "ngx_http_sluice_upstream.h"
#include "ngx_sluice_metrics.h"


typedef struct {
    ngx_http_sluice_upstream_conf_t  upstream;
    ngx_http_sluice_pool_t           pool;
} ngx_http_sluice_pool_conf_t;


/* of a request */

typedef struct {
    ngx_http_sluice_pool_t          *pool;
    ngx_http_request_t              *request;

    /* of the current try */

    ngx_http_sluice_pool_key_t       key;
    ngx_http_sluice_pool_entry_t    *entry;     /* NULL: a new connection */
    ngx_uint_t                       pooled;    /* unsigned  pooled:1; */

    /* the balancer's */

    void                            *data;
    ngx_event_get_peer_pt            get;
    ngx_event_free_peer_pt           free;

#if (NGX_HTTP_SSL)
    ngx_event_set_peer_session_pt    set_session;
    ngx_event_save_peer_session_pt   save_session;
#endif
} ngx_http_sluice_pool_peer_t;


static char *ngx_http_sluice_pool_keepalive(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static ngx_int_t ngx_http_sluice_pool_set(ngx_http_sluice_pool_t *pool,
    ngx_str_t *value);
static void *ngx_http_sluice_pool_create_conf(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_pool_wrap(ngx_conf_t *cf);
static ngx_int_t ngx_http_sluice_pool_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_sluice_pool_get_peer(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_sluice_pool_free_peer(ngx_peer_connection_t *pc,
    void *data, ngx_uint_t state);
static ngx_uint_t ngx_http_sluice_pool_may_keep(
    ngx_http_sluice_pool_peer_t *peer, ngx_connection_t *c, ngx_uint_t state);

#if (NGX_HTTP_SSL)
static ngx_int_t ngx_http_sluice_pool_set_session(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_sluice_pool_save_session(ngx_peer_connection_t *pc,
    void *data);
#endif

extern ngx_module_t  ngx_http_sluice_pool_module;


static ngx_command_t  ngx_http_sluice_pool_commands[] = {

    { ngx_string("sluice_keepalive"),
      NGX_HTTP_UPS_CONF|NGX_CONF_1MORE,
      ngx_http_sluice_pool_keepalive,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_pool_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_pool_wrap,             /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_sluice_pool_create_conf,      /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_pool_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_pool_module_ctx,      /* module context */
    ngx_http_sluice_pool_commands,         /* module directives */
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


/* Connections, then any of requests=, timeout=, time=; defaults as nginx's. */

static char *
ngx_http_sluice_pool_keepalive(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_sluice_pool_conf_t  *pcf = conf;

    char        *rv;
    ngx_int_t    n;
    ngx_str_t   *value;
    ngx_uint_t   i;

    rv = ngx_http_sluice_upstream_enable(cf, cmd, conf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;
    i = 1;

    n = ngx_atoi(value[i].data, value[i].len);
    if (n == NGX_ERROR || n == 0) {
        goto invalid;
    }

    pcf->pool.size = n;
    pcf->pool.requests = 1000;
    pcf->pool.timeout = 60000;
    pcf->pool.time = 3600000;

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_sluice_pool_set(&pcf->pool, &value[i]) != NGX_OK) {
            goto invalid;
        }
    }

    if (ngx_http_sluice_pool_create(&pcf->pool, cf->pool) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" in \"%V\" directive",
                       &value[i], &cmd->name);

    return NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_sluice_pool_set(ngx_http_sluice_pool_t *pool, ngx_str_t *value)
{
    ngx_int_t    n;
    ngx_str_t    text;
    ngx_msec_t  *time;

    if (ngx_strncmp(value->data, "requests=", 9) == 0) {
        n = ngx_atoi(value->data + 9, value->len - 9);
        pool->requests = n;

        return n == NGX_ERROR ? NGX_ERROR : NGX_OK;
    }

    text = *value;

    if (ngx_strncmp(text.data, "timeout=", 8) == 0) {
        text.data += 8;
        text.len -= 8;
        time = &pool->timeout;

    } else if (ngx_strncmp(text.data, "time=", 5) == 0) {
        text.data += 5;
        text.len -= 5;
        time = &pool->time;

    } else {
        return NGX_ERROR;
    }

    n = ngx_parse_time(&text, 0);
    *time = n;

    return n == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


static void *
ngx_http_sluice_pool_create_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_sluice_pool_conf_t));
}


static ngx_int_t
ngx_http_sluice_pool_wrap(ngx_conf_t *cf)
{
    return ngx_http_sluice_upstream_wrap(cf, &ngx_http_sluice_pool_module,
                                         ngx_http_sluice_pool_init_peer);
}


static ngx_int_t
ngx_http_sluice_pool_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_peer_connection_t        *pc;
    ngx_http_sluice_pool_conf_t  *pcf;
    ngx_http_sluice_pool_peer_t  *peer;

    pcf = ngx_http_conf_upstream_srv_conf(us, ngx_http_sluice_pool_module);

    peer = ngx_palloc(r->pool, sizeof(ngx_http_sluice_pool_peer_t));
    if (peer == NULL) {
        return NGX_ERROR;
    }

    if (pcf->upstream.init_peer(r, us) != NGX_OK) {
        return NGX_ERROR;
    }

    pc = &r->upstream->peer;

    peer->pool = &pcf->pool;
    peer->request = r;
    peer->pooled = 0;

    peer->data = pc->data;
    peer->get = pc->get;
    peer->free = pc->free;

    pc->data = peer;
    pc->get = ngx_http_sluice_pool_get_peer;
    pc->free = ngx_http_sluice_pool_free_peer;

#if (NGX_HTTP_SSL)
    peer->set_session = pc->set_session;
    peer->save_session = pc->save_session;

    pc->set_session = ngx_http_sluice_pool_set_session;
    pc->save_session = ngx_http_sluice_pool_save_session;
#endif

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_pool_get_peer(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_pool_peer_t  *peer = data;

    ngx_int_t          rc;
    ngx_connection_t  *c;

    peer->pooled = 0;

    rc = peer->get(pc, peer->data);

    if (rc != NGX_OK) {
        return rc;
    }

#if (NGX_HTTP_SSL)

    /* for each try: the balancer may change what the name is made of */

    rc = ngx_http_sluice_pool_tls_read(peer->request, &peer->key.tls);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : rc;
    }

#endif

    peer->pooled = 1;
    peer->key.sockaddr = pc->sockaddr;
    peer->key.socklen = pc->socklen;

    peer->entry = ngx_http_sluice_pool_take(peer->pool, &peer->key);

    if (peer->entry == NULL) {
        ngx_sluice_metrics_add(SLUICE_METRICS_POOL_OPENED, 1);
        return NGX_OK;
    }

    ngx_sluice_metrics_add(SLUICE_METRICS_POOL_REUSED, 1);

    c = peer->entry->connection;

    c->idle = 0;
    c->sent = 0;
    c->data = NULL;
    c->log = pc->log;
    c->read->log = pc->log;
    c->write->log = pc->log;
    c->pool->log = pc->log;

    if (c->read->timer_set) {
        ngx_del_timer(c->read);
    }

    pc->connection = c;
    pc->cached = 1;

    return NGX_DONE;
}


static void
ngx_http_sluice_pool_free_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_sluice_pool_peer_t  *peer = data;

    ngx_connection_t  *c;

    c = pc->connection;

    if (c && peer->pooled && ngx_http_sluice_pool_may_keep(peer, c, state)) {

        if (peer->entry == NULL) {

            /* the balancer may have moved it since */
            peer->key.sockaddr = pc->sockaddr;

            peer->entry = ngx_http_sluice_pool_make_entry(peer->pool,
                                                          &peer->key, c);
        }

        if (peer->entry) {
            pc->connection = NULL;
            ngx_http_sluice_pool_keep(peer->entry);
        }
    }

    peer->free(pc, peer->data, state);
}


/* nginx's conditions, in its order; what TLS has to say is ours. */

static ngx_uint_t
ngx_http_sluice_pool_may_keep(ngx_http_sluice_pool_peer_t *peer,
    ngx_connection_t *c, ngx_uint_t state)
{
    ngx_http_upstream_t  *u;

    if (state & NGX_PEER_FAILED
        || c->read->eof
        || c->read->error
        || c->read->timedout
        || c->write->error
        || c->write->timedout)
    {
        return 0;
    }

    if (c->requests >= peer->pool->requests
        || ngx_current_msec - c->start_time > peer->pool->time)
    {
        return 0;
    }

    u = peer->request->upstream;

    if (!u->keepalive || !u->request_body_sent) {
        return 0;
    }

    if (ngx_terminate || ngx_exiting) {
        return 0;
    }

#if (NGX_HTTP_SSL)

    if (peer->entry == NULL
        && !ngx_http_sluice_pool_tls_is_made(u, c, &peer->key.tls))
    {
        return 0;
    }

    if (c->ssl && !ngx_http_sluice_pool_tls_is_quiet(c)) {
        return 0;
    }

#endif

    return ngx_handle_read_event(c->read, 0) == NGX_OK;
}


#if (NGX_HTTP_SSL)

static ngx_int_t
ngx_http_sluice_pool_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_pool_peer_t  *peer = data;

    return peer->set_session(pc, peer->data);
}


static void
ngx_http_sluice_pool_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_sluice_pool_peer_t  *peer = data;

    peer->save_session(pc, peer->data);
}

#endif
