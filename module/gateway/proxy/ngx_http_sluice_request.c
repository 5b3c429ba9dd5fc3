
/*
 * What a request is made to be, or refused for, before anything of the gateway
 * looks at it (directive sluice_check_requests).
 *
 * Authority: the target's, if it has one, else that of the Host header (RFC
 * 9112, 3.2.2 and 3.3).  nginx routes by this, but leaves a Host header that
 * differs, or that has more in it than host and port, as it came.  Here the
 * header becomes what has routed, in one spelling, so that no reader of it can
 * see another one.
 *
 * Connection: what it names is removed (ngx_http_sluice_connection.c).
 *
 * Path: dot segments that only an upstream would see (climb.c).
 */


#include "ngx_http_sluice_connection.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_phase.h"
#include "ngx_http_sluice_request.h"
#include "climb.h"


typedef struct {
    ngx_flag_t  check;
    ngx_flag_t  reject_climbs;
} ngx_http_sluice_request_conf_t;


static ngx_int_t ngx_http_sluice_request_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_request_authority(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_request_split(ngx_str_t *text,
    ngx_str_t *port);
static ngx_int_t ngx_http_sluice_request_set_host(ngx_http_request_t *r,
    ngx_str_t *port);
static void *ngx_http_sluice_request_create_conf(ngx_conf_t *cf);
static char *ngx_http_sluice_request_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_sluice_request_init(ngx_conf_t *cf);


extern ngx_module_t  ngx_http_sluice_request_module;


static ngx_command_t  ngx_http_sluice_request_commands[] = {

    { ngx_string("sluice_check_requests"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_sluice_request_conf_t, check),
      NULL },

    { ngx_string("sluice_reject_encoded_climbs"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_http_sluice_request_conf_t, reject_climbs),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_sluice_request_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_sluice_request_init,          /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_sluice_request_create_conf,   /* create server configuration */
    ngx_http_sluice_request_merge_conf,    /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_sluice_request_module = {
    NGX_MODULE_V1,
    &ngx_http_sluice_request_module_ctx,   /* module context */
    ngx_http_sluice_request_commands,      /* module directives */
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


/* in a host, besides what its kind has: letters, digits, "-._~!$&'()*+,;=" */

static uint32_t  ngx_sluice_request_host[8] = {
    0x00000000,
    0x2bff7fd2, /*    ?>=< ;:98 7654 3210 /.-, +*)( '&%$ #"!  */
    0x87fffffe, /*    _^]\  [ZYX WVUT SRQP ONML KJIH GFED CBA@ */
    0x47fffffe, /*     ~}| {zyx wvut srqp onml kjih gfed cba` */
    0x00000000,
    0x00000000,
    0x00000000,
    0x00000000
};


/* not again for the page of an error, to which nginx goes internally */

static ngx_int_t
ngx_http_sluice_request_handler(ngx_http_request_t *r)
{
    u_char                          *path, *end, *query;
    ngx_int_t                        rc;
    ngx_http_sluice_request_conf_t  *conf;

    conf = ngx_http_get_module_srv_conf(r, ngx_http_sluice_request_module);

    if (!conf->check || r->internal || r != r->main) {
        return NGX_DECLINED;
    }

    rc = ngx_http_sluice_request_authority(r);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_connection_apply(r);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (conf->reject_climbs) {
        path = r->unparsed_uri.data;
        end = path + r->unparsed_uri.len;
        query = memchr(path, '?', end - path);

        if (sluice_climb_hides(path, query ? query : end)) {
            ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                          "client sent an encoded climb");
            return NGX_HTTP_BAD_REQUEST;
        }
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_request_authority(ngx_http_request_t *r)
{
    ngx_str_t  text, port;

    ngx_str_null(&port);

    if (r->host_end) {
        text.data = r->host_start;
        text.len = r->host_end - r->host_start;

        if (*r->host_end == ':') {

            /* what stops the loop is there: nginx has parsed the line */

            do {
                text.len++;
            } while (text.data[text.len] >= '0' && text.data[text.len] <= '9');
        }

    } else if (r->headers_in.host) {
        text = r->headers_in.host->value;

    } else {
        return NGX_OK;
    }

    if (ngx_http_sluice_request_split(&text, &port) != NGX_OK) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "client sent invalid authority: \"%V\"", &text);
        return NGX_HTTP_BAD_REQUEST;
    }

    return ngx_http_sluice_request_set_host(r, &port);
}


/* RFC 3986, 3.2.2: host, and a port if there is one, without leading zeros */

static ngx_int_t
ngx_http_sluice_request_split(ngx_str_t *text, ngx_str_t *port)
{
    u_char     *p, *end;
    ngx_uint_t  literal;

    p = text->data;
    end = p + text->len;
    literal = (p < end && *p == '[');
    p += literal;

    for ( /* void */ ; p < end; p++) {

        if ((ngx_sluice_request_host[*p >> 5] & (1U << (*p & 0x1f)))
            || *p == (literal ? ':' : '%'))
        {
            continue;
        }

        if (*p == (literal ? ']' : ':')) {
            p += literal;
            break;
        }

        return NGX_DECLINED;
    }

    if (literal && p[-1] != ']') {
        return NGX_DECLINED;
    }

    port->data = p;
    port->len = 0;

    if (p == end) {
        return NGX_OK;
    }

    if (*p++ != ':') {
        return NGX_DECLINED;
    }

    while (end - p > 1 && *p == '0') {
        p++;
    }

    port->data = p;
    port->len = end - p;

    if (port->len == 0) {
        return NGX_OK;
    }

    if (port->len > sizeof("65535") - 1) {
        return NGX_DECLINED;
    }

    return (ngx_uint_t) ngx_atoi(port->data, port->len) <= 65535
           ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_request_set_host(ngx_http_request_t *r, ngx_str_t *port)
{
    u_char           *p;
    size_t            length;
    ngx_str_t        *server;
    ngx_table_elt_t  *host;

    server = &r->headers_in.server;
    length = server->len + (port->len ? 1 + port->len : 0);
    host = r->headers_in.host;

    if (host
        && host->value.len == length
        && ngx_memcmp(host->value.data, server->data, server->len) == 0
        && (port->len == 0 || host->value.data[server->len] == ':')
        && ngx_memcmp(host->value.data + length - port->len, port->data,
                      port->len) == 0)
    {
        return NGX_OK;
    }

    if (host == NULL) {
        host = ngx_http_sluice_header_list_push(&r->headers_in.headers,
                                                r->pool);
        if (host == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ngx_str_set(&host->key, "Host");
        host->lowcase_key = (u_char *) "host";
        host->hash = ngx_hash(ngx_hash(ngx_hash('h', 'o'), 's'), 't');
        r->headers_in.host = host;
    }

    /* a header of nginx ends with a NUL */

    p = ngx_pnalloc(r->pool, length + 1);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    host->value.data = p;
    host->value.len = length;

    p = ngx_cpymem(p, server->data, server->len);

    if (port->len) {
        *p++ = ':';
        p = ngx_cpymem(p, port->data, port->len);
    }

    *p = '\0';

    return NGX_OK;
}


ngx_uint_t
ngx_http_sluice_request_passes_climbs(ngx_http_request_t *r)
{
    ngx_http_sluice_request_conf_t  *conf;

    conf = ngx_http_get_module_srv_conf(r, ngx_http_sluice_request_module);

    return !conf->reject_climbs;
}


static void *
ngx_http_sluice_request_create_conf(ngx_conf_t *cf)
{
    ngx_http_sluice_request_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_sluice_request_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->check = NGX_CONF_UNSET;
    conf->reject_climbs = NGX_CONF_UNSET;

    return conf;
}


static char *
ngx_http_sluice_request_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_sluice_request_conf_t  *prev = parent;
    ngx_http_sluice_request_conf_t  *conf = child;

    ngx_conf_merge_value(conf->check, prev->check, 0);
    ngx_conf_merge_value(conf->reject_climbs, prev->reject_climbs, 0);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_sluice_request_init(ngx_conf_t *cf)
{
    /* behind the realip module, which is of an earlier phase */

    return ngx_http_sluice_phase_add(cf, NGX_HTTP_SERVER_REWRITE_PHASE,
                                     ngx_http_sluice_request_handler);
}
