
/*
 * The head of what a try sends to its upstream (ngx_http_sluice_head.c).
 */


#ifndef NGX_HTTP_SLUICE_HEAD_H_INCLUDED
#define NGX_HTTP_SLUICE_HEAD_H_INCLUDED


#include "ngx_http_sluice_changed.h"
#include "ngx_http_sluice_module.h"


#define NGX_HTTP_SLUICE_HEAD_LINES  32


typedef struct {
    ngx_str_t                    key;         /* "Name: " */
    ngx_str_t                    lowcase;     /* "name" */
    ngx_uint_t                   hash;        /* of lowcase, as nginx's */
    ngx_int_t                    index;       /* of a variable; NGX_ERROR: no
                                                 line, and not the client's */
    ngx_uint_t                   forwarded;   /* which one; _FORWARDED_LINES:
                                                 none of them */
} ngx_http_sluice_head_line_t;


typedef struct {
    ngx_http_sluice_head_line_t  lines[NGX_HTTP_SLUICE_HEAD_LINES];
    ngx_uint_t                   count;
    uint64_t                     hashes;      /* a bit for each of lines */
    ngx_uint_t                   uri;         /* the place of $sluice_uri */
} ngx_http_sluice_head_conf_t;


#define NGX_HTTP_SLUICE_HEAD_DIRECTIVES(at)                                   \
    { ngx_string("sluice_upstream_header"),                                   \
      NGX_HTTP_SRV_CONF|NGX_CONF_TAKE2,                                       \
      ngx_http_sluice_head_header,                                            \
      NGX_HTTP_SRV_CONF_OFFSET,                                               \
      at,                                                                     \
      NULL }


extern const size_t  ngx_http_sluice_head_at;


char *ngx_http_sluice_head_header(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Replaces the head that nginx has made, of which frame is kept: the lines
 * that frame the body, and the empty one.  To be called for the first try, and
 * again when variables have changed.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_head_write(ngx_http_request_t *r,
    const ngx_str_t *frame);

/* That of the head that nginx's proxy module has just made. */
void ngx_http_sluice_head_frame(ngx_http_request_t *r, ngx_str_t *frame);

/*
 * What an X-Forwarded line says, if no plugin has said it; of length 0: there
 * is none.  NGX_ERROR.
 */
ngx_int_t ngx_http_sluice_head_forwarded(ngx_http_request_t *r,
    ngx_http_sluice_forwarded_e which, ngx_http_variable_value_t *value);


#endif /* NGX_HTTP_SLUICE_HEAD_H_INCLUDED */
