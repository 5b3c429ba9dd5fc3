
/*
 * Who a request comes from, as authentication has found out.
 */


#ifndef NGX_HTTP_SLUICE_IDENTITY_H_INCLUDED
#define NGX_HTTP_SLUICE_IDENTITY_H_INCLUDED


#include "ngx_http_sluice_ctx.h"

#include <math.h>


/* FFI */

/*
 * The same for Lua (gateway/pdk/identity.lua).  Texts of length 0 are not
 * given.
 */

typedef struct {
    size_t       length;
    const char  *data;
} sluice_identity_text_t;

typedef struct {
    sluice_identity_text_t  consumer;         /* ids */
    sluice_identity_text_t  credential;
    sluice_identity_text_t  custom_id;        /* of the consumer; only to */
    sluice_identity_text_t  username;         /*   sluice_identity_set() */
    uint32_t                consumer_slot;    /* and only from */
    uint32_t                consumer_generation;   /* sluice_identity() */
    uint32_t                credential_slot;
    uint32_t                credential_generation;
    uint32_t                is_own;           /* a Lua plugin has said it */
    uint32_t                is_silent;        /* the upstream is not told;
                                                 only to sluice_identity_set()
                                                 */
    uint32_t                has_credential;   /* with or without an id; the
                                                 same */
} sluice_identity_t;


int sluice_identity_set(ngx_http_request_t *r,
    const sluice_identity_t *identity);
int sluice_identity(ngx_http_request_t *r, sluice_identity_t *identity);

/*
 * Another number each time that somebody says who a request comes from, in
 * this worker; negative where a Lua plugin did, and -inf where its word may
 * not count any more; 0: nobody has said it of this one.
 */
double sluice_identity_serial(ngx_http_request_t *r);

/* FFI end */


#define NGX_HTTP_SLUICE_IDENTITY_UNSURE  (-(double) INFINITY)


/*
 * Records a consumer and a credential (records of the image, NULL: none; a
 * consumer without a credential is an anonymous one), for later plugins and
 * for the upstream: X-Consumer-ID, X-Consumer-Custom-ID, X-Consumer-Username,
 * X-Credential-Identifier (the identifier; data NULL: the credential's id),
 * X-Anonymous-Consumer are set or cleared.  Copies what it needs into the
 * request's pool.  NGX_OK, or NGX_ERROR: no memory, the request is to be
 * answered 500.
 */
ngx_int_t ngx_http_sluice_identity_set(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, const sluice_core_found_t *consumer,
    const sluice_core_found_t *credential,
    const sluice_core_text_t *identifier);

/*
 * The consumer with an id, of what the last refresh has found.  NGX_DECLINED:
 * there is none, or this is no id.
 */
ngx_int_t ngx_http_sluice_identity_find(const ngx_str_t *id,
    sluice_core_found_t *found);


#endif /* NGX_HTTP_SLUICE_IDENTITY_H_INCLUDED */
