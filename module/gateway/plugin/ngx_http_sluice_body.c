
/*
 * Bodies of requests that were read into memory (ngx_http_sluice_body.h).
 */


#include "ngx_http_sluice_body.h"
#include "ngx_http_sluice_header.h"


static ngx_int_t ngx_http_sluice_body_join(ngx_http_request_t *r,
    ngx_str_t *body);
static ngx_int_t ngx_http_sluice_body_set_length(ngx_http_request_t *r,
    size_t length);


ngx_int_t
ngx_http_sluice_body(ngx_http_request_t *r, ngx_str_t *body)
{
    ngx_chain_t  *bufs;

    ngx_str_null(body);

    /* one that a plugin in Lua has thrown away is never read */

    if (r->request_body == NULL) {
        return r->discard_body ? NGX_OK : NGX_AGAIN;
    }

    if (r->request_body->temp_file) {
        return NGX_DECLINED;
    }

    bufs = r->request_body->bufs;

    if (bufs && bufs->next) {
        return ngx_http_sluice_body_join(r, body);
    }

    if (bufs) {
        body->data = bufs->buf->pos;
        body->len = bufs->buf->last - bufs->buf->pos;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_body_join(ngx_http_request_t *r, ngx_str_t *body)
{
    u_char       *p;
    size_t        size;
    ngx_chain_t  *cl;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        body->len += cl->buf->last - cl->buf->pos;
    }

    p = ngx_pnalloc(r->pool, body->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    body->data = p;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        size = cl->buf->last - cl->buf->pos;

        /* the last one of a body in chunks has no memory */

        if (size) {
            p = ngx_cpymem(p, cl->buf->pos, size);
        }
    }

    return NGX_OK;
}


int
sluice_body_file(ngx_http_request_t *r, int64_t *size)
{
    ngx_fd_t         fd;
    ngx_file_info_t  info;

    if (r->request_body == NULL || r->request_body->temp_file == NULL) {
        return -1;
    }

    fd = r->request_body->temp_file->file.fd;

    if (ngx_fd_info(fd, &info) == NGX_FILE_ERROR) {
        return -1;
    }

    *size = (int64_t) ngx_file_size(&info);

    return fd;
}


ngx_int_t
ngx_http_sluice_body_replace(ngx_http_request_t *r, ngx_str_t *body)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = NULL;
    cl = NULL;

    if (body->len) {
        b = ngx_calloc_buf(r->pool);
        cl = ngx_alloc_chain_link(r->pool);

        if (b == NULL || cl == NULL) {
            return NGX_ERROR;
        }

        b->start = body->data;
        b->pos = body->data;
        b->last = body->data + body->len;
        b->end = b->last;
        b->temporary = 1;

        cl->buf = b;
        cl->next = NULL;
    }

    r->request_body->bufs = cl;
    r->request_body->buf = b;

    return ngx_http_sluice_body_set_length(r, body->len);
}


/* the upstream is told by length, also where the client came in chunks */

static ngx_int_t
ngx_http_sluice_body_set_length(ngx_http_request_t *r, size_t length)
{
    u_char           *text;
    ngx_table_elt_t  *h;

    text = ngx_pnalloc(r->pool, NGX_SIZE_T_LEN);
    if (text == NULL) {
        return NGX_ERROR;
    }

    h = r->headers_in.content_length;

    if (h == NULL) {
        h = ngx_http_sluice_header_list_push(&r->headers_in.headers, r->pool);
        if (h == NULL) {
            return NGX_ERROR;
        }

        ngx_str_set(&h->key, "Content-Length");
        h->lowcase_key = (u_char *) "content-length";
        h->hash = ngx_hash_key(h->lowcase_key, h->key.len);

        r->headers_in.content_length = h;
    }

    h->value.data = text;
    h->value.len = ngx_sprintf(text, "%uz", length) - text;
    r->headers_in.content_length_n = (off_t) length;

    return NGX_OK;
}
