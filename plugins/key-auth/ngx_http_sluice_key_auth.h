
/*
 * The plugin key-auth: what its files share.
 */


#ifndef NGX_HTTP_SLUICE_KEY_AUTH_H_INCLUDED
#define NGX_HTTP_SLUICE_KEY_AUTH_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "fields.h"


/* Flags of a configuration, as plugins/key-auth/init.lua packs them. */

#define NGX_HTTP_SLUICE_KEY_AUTH_HIDE       0x01
#define NGX_HTTP_SLUICE_KEY_AUTH_HEADER     0x02
#define NGX_HTTP_SLUICE_KEY_AUTH_QUERY      0x04
#define NGX_HTTP_SLUICE_KEY_AUTH_BODY       0x08
#define NGX_HTTP_SLUICE_KEY_AUTH_PREFLIGHT  0x10


typedef struct {
    sluice_core_text_t  plain;          /* of fields */
    ngx_str_t           header;         /* in lower case */
    ngx_str_t           dashed;         /* the same; of length 0: no "_" */
} ngx_http_sluice_key_auth_name_t;


typedef struct {
    ngx_uint_t                        flags;
    ngx_str_t                         anonymous;    /* data NULL: none */
    ngx_str_t                         challenge;    /* WWW-Authenticate */
    ngx_http_sluice_key_auth_name_t  *names;
    ngx_uint_t                        nelts;
} ngx_http_sluice_key_auth_t;


/*
 * Finds the request's key.
 *
 * NGX_OK; NGX_AGAIN: the body has to be read first; NGX_ERROR: no memory;
 * NGX_DECLINED: there is no key, words say why.
 */
ngx_int_t ngx_http_sluice_key_auth_find(ngx_http_request_t *r,
    const ngx_http_sluice_key_auth_t *conf, ngx_str_t *key, ngx_str_t *words);

/*
 * Takes all that may be a key, or a copy of one, out of a request that passes,
 * where that is configured: each of the names, in headers, in the query and in
 * a body that keys are read from.  What was found stays good.  NGX_OK;
 * NGX_AGAIN: nothing was done, the body has to be read first; NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_http_sluice_key_auth_hide(ngx_http_request_t *r,
    const ngx_http_sluice_key_auth_t *conf);


#endif /* NGX_HTTP_SLUICE_KEY_AUTH_H_INCLUDED */
