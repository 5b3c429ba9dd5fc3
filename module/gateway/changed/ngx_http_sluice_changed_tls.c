
/*
 * What plugins change of TLS to the upstream.  The digest of the result is an
 * identity as that of a service (ngx_http_sluice_upstream_tls.h): connections
 * and sessions are kept for requests that want the same.
 */


#include "ngx_http_sluice_changed_service.h"


/* Of a digest. */

typedef struct {
    u_char       service[NGX_HTTP_SLUICE_UPSTREAM_TLS_DIGEST];
    u_char       leaf[EVP_MAX_MD_SIZE];
    uint64_t     trusted;
    uint32_t     verify;
    uint32_t     depth;
} ngx_http_sluice_changed_parts_t;


static void ngx_http_sluice_changed_tls_show(
    const ngx_http_sluice_changed_tls_t *changed,
    ngx_sluice_certificate_t *client);
static ngx_http_sluice_changed_tls_t *ngx_http_sluice_changed_tls_make(
    ngx_http_request_t *r);
static void ngx_http_sluice_changed_tls_free(void *data);
static uint64_t ngx_http_sluice_changed_store_id(X509_STORE *store);


ngx_int_t
ngx_http_sluice_changed_tls(ngx_http_request_t *r,
    const ngx_http_sluice_changed_tls_t *changed,
    ngx_http_sluice_upstream_tls_t **result)
{
    ngx_http_sluice_upstream_tls_t       *tls, *service;
    ngx_http_sluice_changed_parts_t       parts;
    ngx_http_sluice_upstream_tls_conf_t  *conf;

    service = *result;

    tls = ngx_pcalloc(r->pool, sizeof(ngx_http_sluice_upstream_tls_t));
    if (tls == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&parts, sizeof(parts));

    tls->depth = NGX_HTTP_SLUICE_UPSTREAM_TLS_DEPTH;

    /* as long as the request is before its response, the service's is there */

    if (service) {
        *tls = *service;
        ngx_memcpy(parts.service, service->digest, sizeof(parts.service));
    }

    if (changed->leaf) {
        ngx_http_sluice_changed_tls_show(changed, &tls->client);

        if (X509_digest(changed->leaf, EVP_sha256(), parts.leaf, NULL) != 1) {
            return NGX_ERROR;
        }
    }

    if (changed->verify != -1) {
        tls->verify = (unsigned) changed->verify;
    }

    if (changed->depth != -1) {
        tls->depth = changed->depth;
    }

    if (changed->trusted) {
        tls->trusted = changed->trusted;
        parts.trusted = changed->trusted_id;

    } else if (tls->trusted == NULL) {
        conf = ngx_http_sluice_main_conf(r, upstream_tls);
        tls->trusted = conf->trusted;
    }

    if (!tls->verify && tls->client.npairs == 0) {
        *result = NULL;
        return NGX_OK;
    }

    parts.verify = tls->verify;
    parts.depth = (uint32_t) tls->depth;

    if (EVP_Digest(&parts, sizeof(parts), tls->digest, NULL, EVP_sha256(),
                   NULL)
        != 1)
    {
        return NGX_ERROR;
    }

    *result = tls;

    return NGX_OK;
}


static void
ngx_http_sluice_changed_tls_show(const ngx_http_sluice_changed_tls_t *changed,
    ngx_sluice_certificate_t *client)
{
    ngx_sluice_certificate_pair_t  *pair;

    pair = &client->pairs[0];

    pair->leaf = changed->leaf;
    pair->issuers = changed->issuers;
    pair->key = changed->key;

    client->npairs = 1;
}


static ngx_http_sluice_changed_tls_t *
ngx_http_sluice_changed_tls_make(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t             *cln;
    ngx_http_sluice_changed_t      *changed;
    ngx_http_sluice_changed_tls_t  *tls;

    changed = ngx_http_sluice_changed(r);

    if (changed == NULL || changed->tls) {
        return changed ? changed->tls : NULL;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_sluice_changed_tls_t));
    if (cln == NULL) {
        return NULL;
    }

    tls = cln->data;
    ngx_memzero(tls, sizeof(ngx_http_sluice_changed_tls_t));
    tls->depth = -1;
    tls->verify = -1;

    cln->handler = ngx_http_sluice_changed_tls_free;
    changed->tls = tls;

    return tls;
}


/* Connections that use them have references of their own. */

static void
ngx_http_sluice_changed_tls_free(void *data)
{
    ngx_http_sluice_changed_tls_t  *tls = data;

    X509_free(tls->leaf);
    sk_X509_pop_free(tls->issuers, X509_free);
    EVP_PKEY_free(tls->key);
    X509_STORE_free(tls->trusted);
}


int
sluice_changed_verify(ngx_http_request_t *r, int verify)
{
    ngx_http_sluice_changed_tls_t  *tls;

    tls = ngx_http_sluice_changed_tls_make(r);
    if (tls == NULL) {
        return NGX_ERROR;
    }

    tls->verify = verify;

    return NGX_OK;
}


int
sluice_changed_depth(ngx_http_request_t *r, int depth)
{
    ngx_http_sluice_changed_tls_t  *tls;

    tls = ngx_http_sluice_changed_tls_make(r);
    if (tls == NULL) {
        return NGX_ERROR;
    }

    tls->depth = depth;

    return NGX_OK;
}


int
sluice_changed_trusted(ngx_http_request_t *r, void *store)
{
    uint64_t                        id;
    ngx_http_sluice_changed_tls_t  *tls;

    tls = ngx_http_sluice_changed_tls_make(r);
    id = ngx_http_sluice_changed_store_id(store);

    if (tls == NULL || id == 0) {
        return NGX_ERROR;
    }

    X509_STORE_up_ref(store);
    X509_STORE_free(tls->trusted);

    tls->trusted = store;
    tls->trusted_id = id;

    return NGX_OK;
}


/*
 * Another set of certificates may come to have the address of one that is
 * gone.  So each gets a number, which it keeps.  0: no memory.
 */

static uint64_t
ngx_http_sluice_changed_store_id(X509_STORE *store)
{
    uintptr_t  id;

    static int        place = -1;
    static uintptr_t  last;

    if (place == -1) {
        place = CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_X509_STORE, 0, NULL,
                                        NULL, NULL, NULL);
        if (place == -1) {
            return 0;
        }
    }

    id = (uintptr_t) X509_STORE_get_ex_data(store, place);

    if (id == 0) {
        id = last + 1;

        if (X509_STORE_set_ex_data(store, place, (void *) id) != 1) {
            return 0;
        }

        last = id;
    }

    return id;
}


int
sluice_changed_certificate(ngx_http_request_t *r, void *chain, void *key)
{
    X509                           *leaf;
    STACK_OF(X509)                 *issuers;
    ngx_http_sluice_changed_tls_t  *tls;

    if (sk_X509_num(chain) < 1) {
        return NGX_DECLINED;
    }

    tls = ngx_http_sluice_changed_tls_make(r);
    if (tls == NULL) {
        return NGX_ERROR;
    }

    issuers = X509_chain_up_ref(chain);
    if (issuers == NULL) {
        return NGX_ERROR;
    }

    leaf = sk_X509_shift(issuers);
    EVP_PKEY_up_ref(key);

    X509_free(tls->leaf);
    sk_X509_pop_free(tls->issuers, X509_free);
    EVP_PKEY_free(tls->key);

    tls->leaf = leaf;
    tls->issuers = issuers;
    tls->key = key;

    return NGX_OK;
}
