
/*
 * The reader of what plugins' pack() has written (ngx_http_sluice_packed.h).
 */


#include "ngx_http_sluice_packed.h"


#define NGX_HTTP_SLUICE_PACKED_NONE  0xffffffff


static ngx_uint_t ngx_http_sluice_packed_take(ngx_http_sluice_packed_t *packed,
    void *dst, size_t length);


void
ngx_http_sluice_packed_open(ngx_http_sluice_packed_t *packed,
    const ngx_str_t *bytes)
{
    packed->at = bytes->data;
    packed->end = bytes->data + bytes->len;
    packed->failed = 0;
}


uint32_t
ngx_http_sluice_packed_number(ngx_http_sluice_packed_t *packed)
{
    uint32_t  number;

    if (!ngx_http_sluice_packed_take(packed, &number, sizeof(number))) {
        return 0;
    }

    return number;
}


double
ngx_http_sluice_packed_double(ngx_http_sluice_packed_t *packed)
{
    double  number;

    if (!ngx_http_sluice_packed_take(packed, &number, sizeof(number))) {
        return 0;
    }

    if (number != number) {
        packed->failed = 1;
        return 0;
    }

    return number;
}


void
ngx_http_sluice_packed_text(ngx_http_sluice_packed_t *packed, ngx_str_t *text)
{
    uint32_t  length;

    ngx_str_null(text);

    length = NGX_HTTP_SLUICE_PACKED_NONE;

    if (!ngx_http_sluice_packed_take(packed, &length, sizeof(length))
        || length == NGX_HTTP_SLUICE_PACKED_NONE)
    {
        return;
    }

    if (length > (size_t) (packed->end - packed->at)) {
        packed->failed = 1;
        return;
    }

    text->data = (u_char *) packed->at;
    text->len = length;

    packed->at += length;
}


/* each text has a length, of four bytes */

uint32_t
ngx_http_sluice_packed_count(ngx_http_sluice_packed_t *packed)
{
    uint32_t  count;

    count = ngx_http_sluice_packed_number(packed);

    if (count > (size_t) (packed->end - packed->at) / sizeof(uint32_t)) {
        packed->failed = 1;
        return 0;
    }

    return count;
}


ngx_int_t
ngx_http_sluice_packed_done(ngx_http_sluice_packed_t *packed)
{
    return packed->failed || packed->at != packed->end ? NGX_ERROR : NGX_OK;
}


static ngx_uint_t
ngx_http_sluice_packed_take(ngx_http_sluice_packed_t *packed, void *dst,
    size_t length)
{
    if (packed->failed || (size_t) (packed->end - packed->at) < length) {
        packed->failed = 1;
        return 0;
    }

    ngx_memcpy(dst, packed->at, length);
    packed->at += length;

    return 1;
}
