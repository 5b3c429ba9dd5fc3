
/*
 * The plugin jwt in nginx: what its files share.
 */


#ifndef NGX_HTTP_SLUICE_JWT_H_INCLUDED
#define NGX_HTTP_SLUICE_JWT_H_INCLUDED


#include "ngx_http_sluice_decide.h"
#include "sluice_jwt.h"


typedef struct ngx_http_sluice_jwt_known_s  ngx_http_sluice_jwt_known_t;


/* Of one request. */

typedef struct {
    sluice_jwt_own_t              plain;     /* the first: decide() calls it */
    ngx_http_sluice_jwt_known_t  *known;     /* the place of its token */
    ngx_uint_t                    is_known;  /* and that is there */
} ngx_http_sluice_jwt_own_t;


/* ngx_http_sluice_jwt_memory.c */

int ngx_http_sluice_jwt_recall(sluice_jwt_own_t *own,
    const sluice_core_text_t *text, const sluice_core_text_t *key_claim,
    sluice_jwt_token_t *token);
int ngx_http_sluice_jwt_is_right(sluice_jwt_own_t *own,
    const sluice_jwt_signed_t *what);
void ngx_http_sluice_jwt_remember(sluice_jwt_own_t *own,
    const sluice_jwt_signed_t *what);


#endif /* NGX_HTTP_SLUICE_JWT_H_INCLUDED */
