
/*
 * The filters that hold a response back (ngx_http_sluice_buffered.h), and the
 * way from the upstream's end to Lua.
 *
 * nginx takes a response whose head was passed to the filters for one that the
 * client has seen, and could only close the connection where it fails.  So the
 * upstream's header_sent is taken back, in the first call after that: then
 * nginx answers an error, and says by its end that all is well.
 */


#include "ngx_http_sluice_buffered_data.h"
#include "ngx_http_sluice_location.h"


/* Bytes of a piece that a body of unknown length is copied into. */

#define NGX_HTTP_SLUICE_BUFFERED_PIECE  32768

/* Bytes of a file that are read at once. */

#define NGX_HTTP_SLUICE_BUFFERED_READ   8192


static ngx_int_t ngx_http_sluice_buffered_header_filter(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_buffered_begin(void *data);
static void ngx_http_sluice_buffered_end(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_sluice_buffered_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_sluice_buffered_keep(ngx_http_request_t *r,
    ngx_http_sluice_buffered_t *buffered, ngx_chain_t *in);
static ngx_int_t ngx_http_sluice_buffered_add(ngx_http_request_t *r,
    ngx_http_sluice_buffered_t *buffered, ngx_buf_t *b);
static ngx_int_t ngx_http_sluice_buffered_copy(ngx_http_request_t *r,
    ngx_http_sluice_buffered_t *buffered, u_char *data, size_t size);
static ngx_int_t ngx_http_sluice_buffered_send(ngx_http_request_t *r,
    ngx_http_sluice_buffered_t *buffered, ngx_chain_t *in, ngx_uint_t last);
static void ngx_http_sluice_buffered_handler(ngx_event_t *e);
static void ngx_http_sluice_buffered_cleanup(void *data);


static ngx_http_output_header_filter_pt  ngx_http_sluice_buffered_next_header;
static ngx_http_output_body_filter_pt    ngx_http_sluice_buffered_next_body;


void
ngx_http_sluice_buffered_init(void)
{
    ngx_http_sluice_buffered_next_header = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_sluice_buffered_header_filter;

    ngx_http_sluice_buffered_next_body = ngx_http_top_body_filter;
    ngx_http_top_body_filter = ngx_http_sluice_buffered_body_filter;
}


ngx_http_sluice_buffered_t *
ngx_http_sluice_buffered_make(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx)
{
    ngx_pool_cleanup_t          *cln;
    ngx_http_sluice_buffered_t  *buffered;

    if (ctx->buffered) {
        return ctx->buffered;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_sluice_buffered_t));
    if (cln == NULL) {
        return NULL;
    }

    buffered = cln->data;
    ngx_memzero(buffered, sizeof(ngx_http_sluice_buffered_t));

    if (ngx_array_init(&buffered->pieces, r->pool, 4, sizeof(ngx_str_t))
        != NGX_OK)
    {
        return NULL;
    }

    buffered->state = NGX_HTTP_SLUICE_BUFFERED_PASSED;
    buffered->event.handler = ngx_http_sluice_buffered_handler;
    buffered->event.data = r;
    buffered->event.log = r->connection->log;

    cln->handler = ngx_http_sluice_buffered_cleanup;

    ctx->buffered = buffered;

    return buffered;
}


static void
ngx_http_sluice_buffered_cleanup(void *data)
{
    ngx_http_sluice_buffered_t  *buffered = data;

    if (buffered->event.posted) {
        ngx_delete_posted_event(&buffered->event);
    }
}


ngx_int_t
ngx_http_sluice_buffered_want(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_uint_t level)
{
    ngx_http_sluice_buffered_t  *buffered;

    buffered = ngx_http_sluice_buffered_make(r, ctx);
    if (buffered == NULL) {
        return NGX_ERROR;
    }

    buffered->state = NGX_HTTP_SLUICE_BUFFERED_ASKED;
    buffered->wanted = 1;
    buffered->level = level;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_buffered_header_filter(ngx_http_request_t *r)
{
    ngx_http_upstream_t         *u;
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_buffered_t  *buffered;

    ctx = (r == r->main) ? ngx_http_sluice_ctx(r) : NULL;
    buffered = ctx ? ctx->buffered : NULL;

    if (buffered == NULL) {
        return ngx_http_sluice_buffered_next_header(r);
    }

    if (buffered->state == NGX_HTTP_SLUICE_BUFFERED_RELEASED) {
        r->headers_out.content_length_n = buffered->length;

        if (buffered->ranges) {
            buffered->ranges->hash = 1;
            r->headers_out.accept_ranges = buffered->ranges;
        }

        return ngx_http_sluice_buffered_next_header(r);
    }

    u = r->upstream;

    /* an answer of the gateway's, and the end of HTTP, are nobody's to hold */

    if (buffered->state != NGX_HTTP_SLUICE_BUFFERED_ASKED
        || u == NULL
        || u->headers_in.status_n == 0
        || u->upgrade
        || r->err_status)
    {
        return ngx_http_sluice_buffered_next_header(r);
    }

    buffered->state = NGX_HTTP_SLUICE_BUFFERED_HELD;

    buffered->begin = u->input_filter_init;
    buffered->end = u->finalize_request;

    u->input_filter_init = ngx_http_sluice_buffered_begin;
    u->finalize_request = ngx_http_sluice_buffered_end;

    r->filter_need_in_memory = 1;

    return NGX_OK;
}


/* Of nginx's proxy module: its data is the request. */

static ngx_int_t
ngx_http_sluice_buffered_begin(void *data)
{
    ngx_http_request_t  *r = data;

    r->upstream->header_sent = 0;

    return ngx_http_sluice_ctx(r)->buffered->begin(data);
}


/* What comes next, nginx finalizing the request, is not its end. */

static void
ngx_http_sluice_buffered_end(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_sluice_buffered_t  *buffered;

    buffered = ngx_http_sluice_ctx(r)->buffered;

    buffered->end(r, rc);

    if (buffered->state != NGX_HTTP_SLUICE_BUFFERED_HELD) {
        return;
    }

    if (rc == NGX_OK && !buffered->bounded) {
        buffered->state = NGX_HTTP_SLUICE_BUFFERED_WHOLE;

        r->main->count++;
        ngx_post_event(&buffered->event, &ngx_posted_events);
        return;
    }

    if (!buffered->bounded) {
        buffered->state = NGX_HTTP_SLUICE_BUFFERED_PASSED;
        ngx_http_clean_header(r);
    }
}


static ngx_int_t
ngx_http_sluice_buffered_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_http_sluice_ctx_t       *ctx;
    ngx_http_sluice_buffered_t  *buffered;

    ctx = (in && r == r->main) ? ngx_http_sluice_ctx(r) : NULL;
    buffered = ctx ? ctx->buffered : NULL;

    if (buffered == NULL) {
        return ngx_http_sluice_buffered_next_body(r, in);
    }

    switch (buffered->state) {

    case NGX_HTTP_SLUICE_BUFFERED_HELD:
        return ngx_http_sluice_buffered_keep(r, buffered, in);

    case NGX_HTTP_SLUICE_BUFFERED_RELEASED:
        return ngx_http_sluice_buffered_send(r, buffered, in, 0);

    case NGX_HTTP_SLUICE_BUFFERED_REPLACED:
        return ngx_http_sluice_buffered_send(r, buffered, in, 1);

    default:
        return ngx_http_sluice_buffered_next_body(r, in);
    }
}


static ngx_int_t
ngx_http_sluice_buffered_keep(ngx_http_request_t *r,
    ngx_http_sluice_buffered_t *buffered, ngx_chain_t *in)
{
    off_t                             size;
    ngx_buf_t                        *b;
    ngx_http_sluice_buffered_conf_t  *conf;

    conf = ngx_http_sluice_main_conf(r, buffered);

    for ( /* void */ ; in; in = in->next) {
        b = in->buf;
        size = ngx_buf_size(b);

        if (!buffered->bounded && size > (off_t) (conf->max - buffered->size))
        {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "upstream sent a body larger than %uz bytes, which "
                          "plugins want whole", conf->max);

            buffered->bounded = 1;

            r->main->count++;
            ngx_post_event(&buffered->event, &ngx_posted_events);
        }

        if (!buffered->bounded
            && ngx_http_sluice_buffered_add(r, buffered, b) != NGX_OK)
        {
            return NGX_ERROR;
        }

        b->pos = b->last;
        b->file_pos = b->file_last;
    }

    return NGX_OK;
}


/* In a file is what nginx has read ahead of a client that it takes as slow. */

static ngx_int_t
ngx_http_sluice_buffered_add(ngx_http_request_t *r,
    ngx_http_sluice_buffered_t *buffered, ngx_buf_t *b)
{
    off_t    at;
    size_t   size;
    ssize_t  n;
    u_char   data[NGX_HTTP_SLUICE_BUFFERED_READ];

    if (ngx_buf_in_memory(b)) {
        return ngx_http_sluice_buffered_copy(r, buffered, b->pos,
                                             (size_t) (b->last - b->pos));
    }

    if (!b->in_file) {
        return NGX_OK;
    }

    for (at = b->file_pos; at < b->file_last; at += n) {
        size = (size_t) ngx_min(b->file_last - at, (off_t) sizeof(data));
        n = ngx_read_file(b->file, data, size, at);

        if (n <= 0
            || ngx_http_sluice_buffered_copy(r, buffered, data, (size_t) n)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_buffered_copy(ngx_http_request_t *r,
    ngx_http_sluice_buffered_t *buffered, u_char *data, size_t size)
{
    size_t      n;
    ngx_str_t  *piece;

    while (size) {

        if (buffered->room == 0) {
            piece = ngx_array_push(&buffered->pieces);
            if (piece == NULL) {
                return NGX_ERROR;
            }

            /* all of it, as it was announced; or as much as there is */

            n = ngx_max(buffered->size, NGX_HTTP_SLUICE_BUFFERED_PIECE);

            if (r->headers_out.content_length_n > (off_t) buffered->size) {
                n = ngx_min(n, (size_t) r->headers_out.content_length_n
                               - buffered->size);
            }

            piece->data = ngx_palloc(r->pool, n);
            if (piece->data == NULL) {
                return NGX_ERROR;
            }

            piece->len = 0;
            buffered->room = n;
        }

        piece = (ngx_str_t *) buffered->pieces.elts
                + buffered->pieces.nelts - 1;

        n = ngx_min(size, buffered->room);
        ngx_memcpy(piece->data + piece->len, data, n);

        piece->len += n;
        buffered->room -= n;
        buffered->size += n;

        data += n;
        size -= n;
    }

    return NGX_OK;
}


/*
 * Sends what is kept, once; behind it nothing where it is the last, else what
 * came.
 */

static ngx_int_t
ngx_http_sluice_buffered_send(ngx_http_request_t *r,
    ngx_http_sluice_buffered_t *buffered, ngx_chain_t *in, ngx_uint_t last)
{
    ngx_buf_t    *b;
    ngx_str_t    *piece;
    ngx_uint_t    i;
    ngx_chain_t  *cl, *out, **ll;

    if (last) {

        for (cl = in; cl; cl = cl->next) {
            cl->buf->pos = cl->buf->last;
            cl->buf->file_pos = cl->buf->file_last;
        }

        in = NULL;

        if (buffered->sent) {
            return NGX_OK;
        }

        buffered->sent = 1;

    } else {
        buffered->state = NGX_HTTP_SLUICE_BUFFERED_PASSED;
    }

    ll = &out;
    piece = buffered->pieces.elts;

    for (i = 0; i < buffered->pieces.nelts; i++) {
        b = ngx_calloc_buf(r->pool);
        cl = ngx_alloc_chain_link(r->pool);

        if (b == NULL || cl == NULL) {
            return NGX_ERROR;
        }

        b->pos = piece[i].data;
        b->last = piece[i].data + piece[i].len;
        b->memory = 1;

        cl->buf = b;
        *ll = cl;
        ll = &cl->next;
    }

    *ll = in;

    if (last) {
        b = ngx_calloc_buf(r->pool);
        cl = ngx_alloc_chain_link(r->pool);

        if (b == NULL || cl == NULL) {
            return NGX_ERROR;
        }

        b->last_buf = 1;
        b->last_in_chain = 1;

        cl->buf = b;
        cl->next = NULL;
        *ll = cl;
    }

    return ngx_http_sluice_buffered_next_body(r, out);
}


static void
ngx_http_sluice_buffered_handler(ngx_event_t *e)
{
    ngx_connection_t            *c;
    ngx_http_request_t          *r;
    ngx_http_sluice_buffered_t  *buffered;

    r = e->data;
    c = r->connection;
    buffered = ngx_http_sluice_ctx(r)->buffered;

    ngx_http_set_log_request(c->log, r);

    if (buffered->bounded) {

        r->done = 0;

        /* as nginx ends an upstream that nobody wants any more */

        if (r->upstream->cleanup) {
            (*r->upstream->cleanup)(r);
        }

        buffered->state = NGX_HTTP_SLUICE_BUFFERED_PASSED;
        ngx_http_clean_header(r);

        ngx_http_finalize_request(r, NGX_HTTP_BAD_GATEWAY);

    } else {
        r->done = 0;
        r->request_complete = 0;
        r->write_event_handler = ngx_http_core_run_phases;

        ngx_http_sluice_location_enter(r, NGX_HTTP_SLUICE_LOCATION_RESPONSE,
                                       buffered->level);
        ngx_http_core_run_phases(r);
    }

    ngx_http_run_posted_requests(c);
}
