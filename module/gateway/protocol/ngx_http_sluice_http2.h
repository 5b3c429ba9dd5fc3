
/*
 * What clients send by HTTP/2 beside requests: counted and bounded.
 *
 * nginx bounds the streams that are open and those of one turn of its event
 * loop, not what a client resets over time (CVE-2023-44487), and it counts
 * neither.  It has no hook for frames.  So connections of HTTP/2 are read by
 * a function of ours, which sees each frame's head on its way to nginx.
 *
 * Who sends more than the limits within a minute gets GOAWAY, as at a reload:
 * what is in work is answered, nothing new is taken.  Who then goes on, to
 * twice the limit, is cut off.
 *
 * A stream that nginx refuses is one whose HEADERS have come, and which is
 * not among the connection's requests when all of it has been read.
 *
 * A stream that nginx resets, as the client has broken the protocol in it,
 * counts as one that the client has reset: either ends a request that an
 * upstream may work at, and makes room for the next (CVE-2025-8671).
 *
 * A worker that leaves keeps connections for a while that were idle then
 * (ngx_sluice_grace.c).  What comes on one is its last: it gets GOAWAY, too,
 * where nginx would keep it as long as requests come.
 *
 * nginx itself ends connections on which eight times as many bytes have come
 * and gone as requests and responses have, and 8 MiB more.  That bounds frames
 * that are not counted here, and is counted with those that are.
 */


#ifndef NGX_HTTP_SLUICE_HTTP2_H_INCLUDED
#define NGX_HTTP_SLUICE_HTTP2_H_INCLUDED


#include "ngx_http_sluice_module.h"


typedef enum {
    NGX_HTTP_SLUICE_HTTP2_RESETS = 0,
    NGX_HTTP_SLUICE_HTTP2_STREAMS,             /* refused ones */
    NGX_HTTP_SLUICE_HTTP2_FRAMES,              /* that control */
    NGX_HTTP_SLUICE_HTTP2_KINDS
} ngx_http_sluice_http2_kind_e;


/* All servers have the same; "set" where one has any. */

typedef struct {
    ngx_uint_t  most[NGX_HTTP_SLUICE_HTTP2_KINDS];
    ngx_flag_t  set;
} ngx_http_sluice_http2_conf_t;


#define NGX_HTTP_SLUICE_HTTP2_DIRECTIVES(at)                                  \
    { ngx_string("sluice_http2_limits"),       /* resets, streams, frames */  \
      NGX_HTTP_SRV_CONF|NGX_CONF_TAKE3,                                       \
      ngx_http_sluice_http2_limits,                                           \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at,                                                                     \
      NULL }


extern const size_t  ngx_http_sluice_http2_at;


char *ngx_http_sluice_http2_limits(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* When the configuration has been read; when a process begins. */
void ngx_http_sluice_http2_init(ngx_conf_t *cf,
    ngx_http_sluice_http2_conf_t *conf);
void ngx_http_sluice_http2_init_process(ngx_cycle_t *cycle,
    ngx_http_sluice_http2_conf_t *conf);

/* A step of a request (process/ngx_http_sluice_steps.c). */
ngx_int_t ngx_http_sluice_http2_handler(ngx_http_request_t *r);


/*
 * From the first byte of a connection, behind TLS; one that turns out to be of
 * HTTP/1.1 is let go.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_http2_watch(ngx_connection_t *c);


/* nginx has reset a stream of this connection. */

void ngx_http_sluice_http2_reset(ngx_connection_t *c);


/* ngx_http_sluice_http2_interim.c */

/*
 * Sends the head of an interim response, before that of the final one.  It is
 * dropped where frames of the connection wait.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_http2_interim(ngx_http_request_t *r,
    ngx_uint_t status, ngx_list_t *headers);


#endif /* NGX_HTTP_SLUICE_HTTP2_H_INCLUDED */
