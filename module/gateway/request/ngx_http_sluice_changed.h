
/*
 * What plugins in Lua have changed of a request on its way to the upstream,
 * beside what nginx keeps itself (method, query, headers, body): noted while
 * they run, and applied once, behind the last of them
 * (gateway/kit/service.lua and service_request.lua).
 *
 * It hangs on the request's context, and of a request that nobody changes
 * there is none.
 */


#ifndef NGX_HTTP_SLUICE_CHANGED_H_INCLUDED
#define NGX_HTTP_SLUICE_CHANGED_H_INCLUDED


#include "ngx_http_sluice_ctx.h"


#define NGX_HTTP_SLUICE_CHANGED_HTTP   1
#define NGX_HTTP_SLUICE_CHANGED_HTTPS  2


/* Lines of the upstream's head about the client. */

typedef enum {
    NGX_HTTP_SLUICE_FORWARDED_FOR = 0,
    NGX_HTTP_SLUICE_FORWARDED_PROTO,
    NGX_HTTP_SLUICE_FORWARDED_HOST,
    NGX_HTTP_SLUICE_FORWARDED_PORT,
    NGX_HTTP_SLUICE_FORWARDED_PATH,
    NGX_HTTP_SLUICE_FORWARDED_PREFIX,
    NGX_HTTP_SLUICE_FORWARDED_LINES
} ngx_http_sluice_forwarded_e;


typedef struct ngx_http_sluice_changed_tls_s  ngx_http_sluice_changed_tls_t;


/* data NULL, 0: as the route and the service say */

struct ngx_http_sluice_changed_s {
    ngx_str_t                       path;      /* as it is sent; may have a
                                                  query of its own */
    ngx_str_t                       host;      /* of the Host header */

    ngx_str_t                       target;    /* a host, or an upstream */
    ngx_array_t                    *addresses; /* of target, of ngx_str_t;
                                                  NULL: Lua was not asked */
    in_port_t                       port;      /* of target */

    uint32_t                        connect_ms;
    uint32_t                        send_ms;
    uint32_t                        read_ms;
    uint32_t                        tries;

    ngx_http_sluice_changed_tls_t  *tls;       /* changed/ */

    ngx_http_variable_value_t      *forwarded; /* each of the lines; those that
                                                  are valid; NULL: none is */

    unsigned                        scheme:2;  /* NGX_HTTP_SLUICE_CHANGED_ */
};


/* The one that it has, or a new one; NULL: no memory. */
ngx_http_sluice_changed_t *ngx_http_sluice_changed(ngx_http_request_t *r);

/* A path, with what may not stand in a request line encoded. */
ngx_int_t ngx_http_sluice_changed_set_path(ngx_http_request_t *r,
    const u_char *path, size_t length);

/* A host, with control characters encoded. */
ngx_int_t ngx_http_sluice_changed_set_host(ngx_http_request_t *r,
    const u_char *host, size_t length);

/* An X-Forwarded line, in the same way; of length 0: it is not sent. */
ngx_int_t ngx_http_sluice_changed_set_forwarded(ngx_http_request_t *r,
    ngx_http_sluice_forwarded_e which, const u_char *text, size_t length);

/* What was set, or NULL. */
ngx_http_variable_value_t *ngx_http_sluice_changed_forwarded(
    ngx_http_sluice_ctx_t *ctx, ngx_uint_t which);

/* "http" or "https"; NGX_DECLINED: another one */
ngx_int_t ngx_http_sluice_changed_set_scheme(ngx_http_request_t *r,
    const u_char *scheme, size_t length);


/* FFI */

/* NGX_OK; NGX_ERROR: no memory. */

int sluice_changed_path(ngx_http_request_t *r, const char *path,
    size_t length);
int sluice_changed_host(ngx_http_request_t *r, const char *host,
    size_t length);
int sluice_changed_scheme(ngx_http_request_t *r, const char *scheme,
    size_t length);
int sluice_changed_target(ngx_http_request_t *r, const char *host,
    size_t length, uint32_t port);
int sluice_changed_times(ngx_http_request_t *r, uint32_t connect_ms,
    uint32_t send_ms, uint32_t read_ms);
int sluice_changed_retries(ngx_http_request_t *r, uint32_t retries);

/* What access_leave waits for: the host whose addresses Lua is to say. */
void sluice_changed_wanted(ngx_http_request_t *r, sluice_core_text_t *host);
int sluice_changed_address(ngx_http_request_t *r, const char *address,
    size_t length);

/* FFI end */


#endif /* NGX_HTTP_SLUICE_CHANGED_H_INCLUDED */
