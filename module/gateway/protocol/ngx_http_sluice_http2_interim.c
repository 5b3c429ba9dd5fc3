
/*
 * The head of an interim response, by HTTP/2.
 *
 * nginx's filter writes one head for a stream, and counts the frames that the
 * stream has waiting from there on.  So this frame is the connection's, as
 * those of SETTINGS are: a stream that ends meanwhile does not take it along.
 * A connection has room for one, and sends none while anything waits.
 */


#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_http2.h"


#define NGX_HTTP_SLUICE_HTTP2_STATUS  (1 + 1 + 3)   /* of its field */


/* Of a connection, in its pool. */

typedef struct {
    ngx_http_v2_out_frame_t   frame;
    ngx_chain_t               chain;
    ngx_buf_t                 buf;             /* while it is sent */
} ngx_http_sluice_http2_interim_t;


static ngx_http_sluice_http2_interim_t *ngx_http_sluice_http2_interim_get(
    ngx_connection_t *c);
static void ngx_http_sluice_http2_interim_end(void *data);
static ngx_uint_t ngx_http_sluice_http2_interim_is_long(ngx_list_t *headers);
static u_char *ngx_http_sluice_http2_interim_encode(ngx_http_request_t *r,
    ngx_uint_t status, ngx_list_t *headers, size_t *size);
static ngx_int_t ngx_http_sluice_http2_interim_frames(
    ngx_http_sluice_http2_interim_t *interim, ngx_http_v2_stream_t *stream,
    u_char *block, size_t size);
static ngx_int_t ngx_http_sluice_http2_interim_sent(
    ngx_http_v2_connection_t *h2c, ngx_http_v2_out_frame_t *frame);


ngx_int_t
ngx_http_sluice_http2_interim(ngx_http_request_t *r, ngx_uint_t status,
    ngx_list_t *headers)
{
    size_t                            size;
    u_char                           *block;
    ngx_http_v2_connection_t         *h2c;
    ngx_http_sluice_http2_interim_t  *interim;

    h2c = r->stream->connection;

    if (ngx_http_sluice_http2_interim_is_long(headers)
        || h2c->last_out
        || !h2c->connection->write->ready
        || r->stream->rst_sent)
    {
        return NGX_OK;
    }

    interim = ngx_http_sluice_http2_interim_get(h2c->connection);
    if (interim == NULL) {
        return NGX_ERROR;
    }

    block = ngx_http_sluice_http2_interim_encode(r, status, headers, &size);

    if (block == NULL
        || ngx_http_sluice_http2_interim_frames(interim, r->stream, block,
                                                size)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    h2c->table_update = 0;

    ngx_http_v2_queue_ordered_frame(h2c, &interim->frame);

    /* else nginx sends it when it has read what there is */

    if (!h2c->blocked) {
        (void) ngx_http_v2_send_output_queue(h2c);
    }

    return NGX_OK;
}


static ngx_http_sluice_http2_interim_t *
ngx_http_sluice_http2_interim_get(ngx_connection_t *c)
{
    ngx_pool_cleanup_t               *cln;
    ngx_http_sluice_http2_interim_t  *interim;

    for (cln = c->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_sluice_http2_interim_end) {
            return cln->data;
        }
    }

    cln = ngx_pool_cleanup_add(c->pool,
                               sizeof(ngx_http_sluice_http2_interim_t));
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_sluice_http2_interim_end;

    interim = cln->data;
    ngx_memzero(interim, sizeof(ngx_http_sluice_http2_interim_t));

    interim->frame.handler = ngx_http_sluice_http2_interim_sent;
    interim->frame.first = &interim->chain;
    interim->frame.last = &interim->chain;
    interim->chain.buf = &interim->buf;

    interim->buf.temporary = 1;
    interim->buf.flush = 1;

    return interim;
}


/* Its memory is the pool's; by this a connection finds it again. */

static void
ngx_http_sluice_http2_interim_end(void *data)
{
}


/* As in nginx's filter: more does not fit the bytes of a length. */

static ngx_uint_t
ngx_http_sluice_http2_interim_is_long(ngx_list_t *headers)
{
    ngx_table_elt_t                *h;
    ngx_http_sluice_header_walk_t   walk;

    ngx_http_sluice_header_each(h, walk, headers) {

        if (h->key.len > NGX_HTTP_V2_MAX_FIELD
            || h->value.len > NGX_HTTP_V2_MAX_FIELD)
        {
            return 1;
        }
    }

    return 0;
}


/* The fields as HPACK has them (RFC 7541, 6.2.2: none is to be indexed). */

static u_char *
ngx_http_sluice_http2_interim_encode(ngx_http_request_t *r, ngx_uint_t status,
    ngx_list_t *headers, size_t *size)
{
    size_t                          length, longest;
    u_char                         *p, *block, *room;
    ngx_table_elt_t                *h;
    ngx_http_sluice_header_walk_t   walk;

    length = 1 + NGX_HTTP_SLUICE_HTTP2_STATUS;
    longest = 0;

    ngx_http_sluice_header_each(h, walk, headers) {
        length += 1 + NGX_HTTP_V2_INT_OCTETS + h->key.len
                  + NGX_HTTP_V2_INT_OCTETS + h->value.len;
        longest = ngx_max(longest, ngx_max(h->key.len, h->value.len));
    }

    block = ngx_pnalloc(r->pool, length + longest);
    if (block == NULL) {
        return NULL;
    }

    p = block;
    room = block + length;

    if (r->stream->connection->table_update) {

        /* nginx says so in its first block: its table has no room */

        *p++ = (1 << 5) | 0;
    }

    *p++ = NGX_HTTP_V2_STATUS_INDEX;
    *p++ = NGX_HTTP_V2_ENCODE_RAW | 3;
    p = ngx_sprintf(p, "%03ui", status);

    ngx_http_sluice_header_each(h, walk, headers) {
        *p++ = 0;
        p = ngx_http_v2_write_name(p, h->key.data, h->key.len, room);
        p = ngx_http_v2_write_value(p, h->value.data, h->value.len, room);
    }

    *size = p - block;

    return block;
}


/* HEADERS, and CONTINUATION for what is beyond a frame of this client's. */

static ngx_int_t
ngx_http_sluice_http2_interim_frames(ngx_http_sluice_http2_interim_t *interim,
    ngx_http_v2_stream_t *stream, u_char *block, size_t size)
{
    size_t       room, part;
    u_char      *p, *last, type;
    ngx_buf_t   *b;
    ngx_pool_t  *pool;
    ngx_uint_t   id;

    b = &interim->buf;
    pool = stream->connection->connection->pool;
    part = stream->connection->frame_size;
    last = block + size;
    room = size + (size / part + 1) * NGX_HTTP_V2_FRAME_HEADER_SIZE;


    /* at least a page: what ngx_pfree() gives back */

    b->start = ngx_palloc(pool, ngx_max(room, ngx_pagesize));
    if (b->start == NULL) {
        return NGX_ERROR;
    }

    p = b->start;
    id = stream->node->id;
    type = NGX_HTTP_V2_HEADERS_FRAME;

    do {
        part = ngx_min(part, (size_t) (last - block));

        *p++ = (u_char) (part >> 16);
        *p++ = (u_char) (part >> 8);
        *p++ = (u_char) part;
        *p++ = type;
        *p++ = (block + part == last) ? NGX_HTTP_V2_END_HEADERS_FLAG
                                      : NGX_HTTP_V2_NO_FLAG;
        *p++ = (u_char) (id >> 24);
        *p++ = (u_char) (id >> 16);
        *p++ = (u_char) (id >> 8);
        *p++ = (u_char) id;

        p = ngx_cpymem(p, block, part);

        block += part;
        type = NGX_HTTP_V2_CONTINUATION_FRAME;

    } while (block < last);

    b->pos = b->start;
    b->last = p;
    b->end = p;

    interim->frame.length = b->last - b->pos - NGX_HTTP_V2_FRAME_HEADER_SIZE;
    interim->frame.blocked = 0;

    return NGX_OK;
}


/* As nginx's own for the head of a response, but for its stream's counts. */

static ngx_int_t
ngx_http_sluice_http2_interim_sent(ngx_http_v2_connection_t *h2c,
    ngx_http_v2_out_frame_t *frame)
{
    if (frame->first->buf->pos != frame->first->buf->last) {
        return NGX_AGAIN;
    }

    h2c->total_bytes += NGX_HTTP_V2_FRAME_HEADER_SIZE + frame->length;
    h2c->payload_bytes += frame->length;

    (void) ngx_pfree(h2c->connection->pool, frame->first->buf->start);

    return NGX_OK;
}
