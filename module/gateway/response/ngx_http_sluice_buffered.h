
/*
 * Responses that plugins in Lua see whole before the client gets a byte: of a
 * chain with a phase `response`, and of requests that have asked for it
 * (kong.service.request.enable_buffering).  And those that a plugin replaces
 * when their head is about to be sent.
 *
 * The first of all filters keeps the head from going on, and the body in the
 * request's memory.  When the upstream has sent all, the request begins its
 * content phase anew, in a location whose handler is Lua's: that runs the
 * phase, which may yield, and sends.  nginx's own way to this, a subrequest,
 * would have to be given the request's route, peer, times and logs; here they
 * are the request's, on HTTP/1 and HTTP/2.
 *
 *     sluice_buffered_body_size 16m;
 *
 * bounds the body: a longer one is answered 502, and so is one that the
 * upstream has cut short.  What switches protocols is not buffered.
 */


#ifndef NGX_HTTP_SLUICE_BUFFERED_H_INCLUDED
#define NGX_HTTP_SLUICE_BUFFERED_H_INCLUDED


#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_module.h"


#define NGX_HTTP_SLUICE_BUFFERED_MAX  (16 * 1024 * 1024)


typedef struct {
    size_t  max;
} ngx_http_sluice_buffered_conf_t;


#define NGX_HTTP_SLUICE_BUFFERED_DIRECTIVES(at)                               \
    { ngx_string("sluice_buffered_body_size"),                                \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_conf_set_size_slot,                                                 \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at + offsetof(ngx_http_sluice_buffered_conf_t, max),                    \
      NULL }


extern const size_t  ngx_http_sluice_buffered_at;


/*
 * When the configuration has been read, and all modules that are loaded
 * before have their filters.
 */
void ngx_http_sluice_buffered_init(void);

/*
 * Buffers the response that will come; level: of the request's late phases
 * (ngx_http_sluice_location.h).  NGX_OK, NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_buffered_want(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_uint_t level);


/* FFI */

/* NGX_OK, NGX_ERROR: no memory. */

int sluice_buffered_ask(ngx_http_request_t *r);

/*
 * The body that was buffered; NGX_DECLINED: nobody has asked for it; of length
 * 0 where none came.  Good as long as the request.
 */
int sluice_buffered_body(ngx_http_request_t *r, sluice_core_text_t *body);

/* What was buffered goes out when Lua ends; or it is dropped, head and all. */
void sluice_buffered_release(ngx_http_request_t *r);
void sluice_buffered_drop(ngx_http_request_t *r, int head);

/* In a header filter: this body goes out in place of the one that comes. */
int sluice_buffered_replace(ngx_http_request_t *r, const char *body,
    size_t length);

/* FFI end */


#endif /* NGX_HTTP_SLUICE_BUFFERED_H_INCLUDED */
