
/*
 * The lines of an upstream's response that are not the client's: what its
 * Connection names, and what the gateway says itself.
 */


#include "ngx_http_sluice_header_options.h"
#include "ngx_http_sluice_response.h"


typedef struct {
    ngx_http_sluice_response_own_t      *own;
    ngx_http_sluice_header_options_t   names;
} ngx_http_sluice_response_dropped_t;


static ngx_int_t ngx_http_sluice_response_names(ngx_http_request_t *r,
    ngx_http_sluice_header_options_t *names);
static ngx_uint_t ngx_http_sluice_response_drops(ngx_table_elt_t *h,
    void *data);
static ngx_uint_t ngx_http_sluice_response_drops_nginx(ngx_table_elt_t *h,
    void *data);
static ngx_uint_t ngx_http_sluice_response_is_field(ngx_table_elt_t *h);


/* Of a response with a body, whose frame is nginx's. */

static ngx_str_t  ngx_http_sluice_response_frame[] = {
    ngx_string("connection"),
    ngx_string("content-length"),
    ngx_string("keep-alive"),
    ngx_string("transfer-encoding")
};


ngx_int_t
ngx_http_sluice_response_drop_lines(ngx_http_request_t *r,
    ngx_http_sluice_response_own_t *own)
{
    ngx_http_upstream_t                 *u;
    ngx_http_sluice_response_dropped_t   dropped;

    u = r->upstream;

    dropped.own = own;
    dropped.names.count = 0;
    dropped.names.lengths = 0;

    if (u->headers_in.connection
        && ngx_http_sluice_response_names(r, &dropped.names) != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "upstream sent more than %d names in \"Connection\"",
                      NGX_HTTP_SLUICE_HEADER_OPTIONS_MAX);
        return NGX_HTTP_UPSTREAM_INVALID_HEADER;
    }

    if (dropped.names.count == 0 && own == NULL) {
        return NGX_OK;
    }

    return ngx_http_sluice_header_list_drop(&u->headers_in.headers, r->pool,
                                            ngx_http_sluice_response_drops,
                                            &dropped);
}


/* Collects what all Connection lines name; nginx knows one of them. */

static ngx_int_t
ngx_http_sluice_response_names(ngx_http_request_t *r,
    ngx_http_sluice_header_options_t *names)
{
    ngx_table_elt_t               *h;
    ngx_http_sluice_header_walk_t  walk;

    ngx_http_sluice_header_each(h, walk, &r->upstream->headers_in.headers) {

        if (h->key.len == sizeof("connection") - 1
            && ngx_memcmp(h->lowcase_key, "connection", h->key.len) == 0
            && ngx_http_sluice_header_options_add(names, &h->value)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_response_drops(ngx_table_elt_t *h, void *data)
{
    ngx_http_sluice_response_dropped_t  *dropped = data;

    ngx_uint_t         i;
    sluice_header_t  **own;

    if (ngx_http_sluice_header_options_has(&dropped->names, h->key.data,
                                         h->key.len))
    {
        return 1;
    }

    if (dropped->own == NULL) {
        return 0;
    }

    if ((dropped->own->hashes & ngx_http_sluice_response_own_bit(h->hash))
        == 0)
    {
        return 0;
    }

    own = dropped->own->headers.elts;

    for (i = 0; i < dropped->own->headers.nelts; i++) {

        if (h->hash == (ngx_uint_t) own[i]->hash
            && h->key.len == own[i]->length
            && ngx_strncmp(h->lowcase_key, own[i]->lowcase, h->key.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_http_sluice_response_drop_nginx(ngx_http_request_t *r)
{
    return ngx_http_sluice_header_list_drop(&r->upstream->headers_in.headers,
                                       r->pool,
                                       ngx_http_sluice_response_drops_nginx,
                                       r->upstream->conf);
}


static ngx_uint_t
ngx_http_sluice_response_drops_nginx(ngx_table_elt_t *h, void *data)
{
    ngx_http_upstream_conf_t  *conf = data;

    ngx_str_t   *name;
    ngx_uint_t   i;

    /* by lines without a value nginx says that there is no Server, or Date */

    if (h->value.data == NULL
        || h->hash == 0
        || !ngx_http_sluice_response_is_field(h))
    {
        return 1;
    }

    for (i = 0;
         i < sizeof(ngx_http_sluice_response_frame) / sizeof(ngx_str_t);
         i++)
    {
        name = &ngx_http_sluice_response_frame[i];

        if (h->key.len == name->len
            && ngx_memcmp(h->lowcase_key, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    return ngx_hash_find(&conf->hide_headers_hash, h->hash, h->lowcase_key,
                         h->key.len)
           != NULL;
}


/* Whether its name is a token, its value without controls (RFC 9110, 5). */

static ngx_uint_t
ngx_http_sluice_response_is_field(ngx_table_elt_t *h)
{
    u_char  *p, c;

    for (p = h->key.data; p < h->key.data + h->key.len; p++) {
        c = *p | 0x20;

        if ((c < 'a' || c > 'z')
            && (*p < '0' || *p > '9')
            && (*p == '\0' || ngx_strchr("!#$%&'*+-.^_`|~", *p) == NULL))
        {
            return 0;
        }
    }

    for (p = h->value.data; p < h->value.data + h->value.len; p++) {

        if ((*p < ' ' && *p != '\t') || *p == 0x7f) {
            return 0;
        }
    }

    return 1;
}
