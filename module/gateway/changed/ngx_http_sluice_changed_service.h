
/*
 * The service of a request as plugins have changed it
 * (ngx_http_sluice_changed_service.c).
 */


#ifndef NGX_HTTP_SLUICE_CHANGED_SERVICE_H_INCLUDED
#define NGX_HTTP_SLUICE_CHANGED_SERVICE_H_INCLUDED


#include "ngx_http_sluice_changed.h"
#include "ngx_http_sluice_service.h"


/* What a plugin says of TLS to the upstream.  Its references are ours. */

struct ngx_http_sluice_changed_tls_s {
    X509            *leaf;            /* NULL: the service's certificate */
    STACK_OF(X509)  *issuers;
    EVP_PKEY        *key;

    X509_STORE      *trusted;         /* NULL: the service's */
    uint64_t         trusted_id;      /* no other set has it */

    int              depth;           /* -1: the service's */
    int              verify;          /* 0, 1; -1: the service's */
};


/*
 * Puts a copy of the context's service, with what was changed, in its place;
 * to be called once, when all plugins have run.  NGX_OK; NGX_AGAIN: the
 * addresses of the changed target are to be said first; NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_sluice_changed_service(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx);

/*
 * TLS of the service with what changed says; NULL: neither is somebody
 * verified nor something shown.  NGX_OK, NGX_ERROR.
 */
ngx_int_t ngx_http_sluice_changed_tls(ngx_http_request_t *r,
    const ngx_http_sluice_changed_tls_t *changed,
    ngx_http_sluice_upstream_tls_t **tls);


/* FFI */

/* ngx_http_sluice_changed_service.c */

/* NGX_OK; NGX_DECLINED: there is no upstream of this name; NGX_ERROR. */
int sluice_changed_upstream(ngx_http_request_t *r, const char *name,
    size_t length);

/* ngx_http_sluice_changed_tls.c: NGX_OK, NGX_ERROR: no memory. */

int sluice_changed_verify(ngx_http_request_t *r, int verify);
int sluice_changed_depth(ngx_http_request_t *r, int depth);
int sluice_changed_trusted(ngx_http_request_t *r, void *store);

/* A chain of certificates, the leaf first.  NGX_DECLINED: it has none. */
int sluice_changed_certificate(ngx_http_request_t *r, void *chain, void *key);

/* FFI end */


#endif /* NGX_HTTP_SLUICE_CHANGED_SERVICE_H_INCLUDED */
