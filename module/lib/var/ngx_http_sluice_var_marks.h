
/*
 * Which bytes of a text are "=", or end something: a bit for each, 64 bytes at
 * once.  No byte outside the text is read.
 */


#ifndef NGX_HTTP_SLUICE_VAR_MARKS_H_INCLUDED
#define NGX_HTTP_SLUICE_VAR_MARKS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


/* A text is looked at through windows of so many bytes, a bit for each. */
#define NGX_HTTP_SLUICE_VAR_WINDOW  64


typedef char  ngx_http_sluice_var_block_t
    __attribute__ ((vector_size (16)));
typedef uint64_t  ngx_http_sluice_var_pair_t
    __attribute__ ((vector_size (16)));


/* The bytes of a window that are ..., the first one in the lowest bit. */

typedef struct {
    uint64_t  equals;    /* "=" */
    uint64_t  breaks;    /* "&" or, in a cookie, ";,$( "; the text's end */
} ngx_http_sluice_var_marks_t;


static ngx_inline uint64_t ngx_http_sluice_var_word(const u_char *p,
    size_t len);
static ngx_inline void ngx_http_sluice_var_mark(const u_char *p, size_t len,
    u_char end, ngx_http_sluice_var_marks_t *marks);
static ngx_inline void ngx_http_sluice_var_mark_block(
    ngx_http_sluice_var_block_t block, ngx_uint_t shift, u_char end,
    ngx_http_sluice_var_marks_t *marks);
static ngx_inline ngx_http_sluice_var_block_t ngx_http_sluice_var_block(
    const u_char *p);
static ngx_inline uint64_t ngx_http_sluice_var_bits(
    ngx_http_sluice_var_block_t block);
static ngx_inline ngx_http_sluice_var_block_t ngx_http_sluice_var_short_block(
    const u_char *p, size_t len);


/* One to eight bytes; some may be in the word twice. */

static ngx_inline uint64_t
ngx_http_sluice_var_word(const u_char *p, size_t len)
{
    uint32_t  begin, end;

    if (len >= 4) {
        memcpy(&begin, p, 4);
        memcpy(&end, p + len - 4, 4);

        return (uint64_t) end << 32 | begin;
    }

    return p[0] | p[len / 2] << 8 | p[len - 1] << 16;
}


/* Of up to a window. */

static ngx_inline void
ngx_http_sluice_var_mark(const u_char *p, size_t len, u_char end,
    ngx_http_sluice_var_marks_t *marks)
{
    marks->equals = 0;
    marks->breaks = 0;

    if (len >= NGX_HTTP_SLUICE_VAR_WINDOW) {
        len = NGX_HTTP_SLUICE_VAR_WINDOW;

    } else {
        marks->breaks = (uint64_t) 1 << len;
    }

    if (len < 16) {
        ngx_http_sluice_var_mark_block(
                 ngx_http_sluice_var_short_block(p, len), 0, end, marks);
        return;
    }

    ngx_http_sluice_var_mark_block(ngx_http_sluice_var_block(p), 0, end,
                                   marks);

    if (len > 32) {
        ngx_http_sluice_var_mark_block(ngx_http_sluice_var_block(p + 16), 16,
                                       end, marks);
    }

    if (len > 48) {
        ngx_http_sluice_var_mark_block(ngx_http_sluice_var_block(p + 32), 32,
                                       end, marks);
    }

    /* may overlap */

    len -= 16;
    ngx_http_sluice_var_mark_block(ngx_http_sluice_var_block(p + len), len,
                                   end, marks);
}


static ngx_inline void
ngx_http_sluice_var_mark_block(ngx_http_sluice_var_block_t block,
    ngx_uint_t shift, u_char end, ngx_http_sluice_var_marks_t *marks)
{
    ngx_http_sluice_var_block_t  breaks;

    breaks = block == (char) end;

    if (end == ';') {
        /* "," and " "; "$" and "(", too, which do no harm */
        breaks |= (block | (',' ^ ' ')) == ',';
    }

    marks->equals |= ngx_http_sluice_var_bits(block == '=') << shift;
    marks->breaks |= ngx_http_sluice_var_bits(breaks) << shift;
}


static ngx_inline ngx_http_sluice_var_block_t
ngx_http_sluice_var_block(const u_char *p)
{
    ngx_http_sluice_var_block_t  block;

    memcpy(&block, p, sizeof(ngx_http_sluice_var_block_t));

    return block;
}


/* A bit of each byte, which is 0 or -1. */

static ngx_inline uint64_t
ngx_http_sluice_var_bits(ngx_http_sluice_var_block_t block)
{
#if (__SSE2__)

    return __builtin_ia32_pmovmskb128(block);

#else

    uint64_t    bits;
    ngx_uint_t  i;

    bits = 0;

    for (i = 0; i < 16; i++) {
        bits |= (uint64_t) (block[i] & 1) << i;
    }

    return bits;

#endif
}


/* Up to 15 bytes, and zeros. */

static ngx_inline ngx_http_sluice_var_block_t
ngx_http_sluice_var_short_block(const u_char *p, size_t len)
{
#if (NGX_HAVE_LITTLE_ENDIAN)

    uint32_t                    begin, end;
    ngx_http_sluice_var_pair_t  pair = { 0, 0 };

    if (len > 8) {
        pair[0] = ngx_http_sluice_var_word(p, 8);
        pair[1] = ngx_http_sluice_var_word(p + len - 8, 8) >> 8 * (16 - len);

    } else if (len >= 4) {
        memcpy(&begin, p, 4);
        memcpy(&end, p + len - 4, 4);

        pair[0] = begin | (uint64_t) end << 8 * (len - 4);

    } else if (len) {
        pair[0] = p[0] | p[len / 2] << 8 * (len / 2)
                  | p[len - 1] << 8 * (len - 1);
    }

    return (ngx_http_sluice_var_block_t) pair;

#else

    ngx_http_sluice_var_block_t  block = { 0 };

    memcpy(&block, p, len);

    return block;

#endif
}


#endif /* NGX_HTTP_SLUICE_VAR_MARKS_H_INCLUDED */
