
/*
 * The plugin key-auth: asks for a key that belongs to a consumer
 * (docs/plugins/key-auth.md).
 */


#include "ngx_http_sluice_plugin.h"
#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_key_auth.h"
#include "ngx_http_sluice_packed.h"
#include "ngx_sluice_abi.h"


static void *ngx_http_sluice_key_auth_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words);
static ngx_int_t ngx_http_sluice_key_auth_compile_names(ngx_pool_t *pool,
    ngx_http_sluice_packed_t *packed, ngx_http_sluice_key_auth_t *conf);
static ngx_int_t ngx_http_sluice_key_auth_compile_name(ngx_pool_t *pool,
    ngx_str_t *plain, ngx_http_sluice_key_auth_name_t *name);
static ngx_int_t ngx_http_sluice_key_auth_copy(ngx_pool_t *pool,
    ngx_http_sluice_packed_t *packed, ngx_str_t *copy);
static ngx_int_t ngx_http_sluice_key_auth_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);
static ngx_int_t ngx_http_sluice_key_auth_identify(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_str_t *key);
static ngx_int_t ngx_http_sluice_key_auth_anonymous(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_key_auth_t *conf);
static int ngx_http_sluice_key_auth_consumer(ngx_str_t *name,
    sluice_core_found_t *consumer);
static ngx_int_t ngx_http_sluice_key_auth_unreadable(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_key_auth_refuse(ngx_http_request_t *r,
    ngx_http_sluice_key_auth_t *conf, ngx_str_t *words);


ngx_http_sluice_plugin_t  ngx_http_sluice_key_auth_plugin = {
    ngx_string("key-auth"),
    ngx_http_sluice_key_auth_compile,
    ngx_http_sluice_key_auth_access
};


static const ngx_str_t  ngx_http_sluice_key_auth_kind =
    ngx_string("keyauth_credentials");
static ngx_str_t  ngx_http_sluice_key_auth_wrong = ngx_string("Unauthorized");


static void *
ngx_http_sluice_key_auth_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words)
{
    ngx_http_sluice_packed_t     packed;
    ngx_http_sluice_key_auth_t  *conf;

    conf = ngx_pcalloc(pool, sizeof(ngx_http_sluice_key_auth_t));
    if (conf == NULL) {
        return NULL;
    }

    ngx_http_sluice_packed_open(&packed, &binding->packed);

    conf->flags = ngx_http_sluice_packed_number(&packed);

    if (ngx_http_sluice_key_auth_copy(pool, &packed, &conf->anonymous)
            != NGX_OK
        || ngx_http_sluice_key_auth_copy(pool, &packed, &conf->challenge)
           != NGX_OK
        || ngx_http_sluice_key_auth_compile_names(pool, &packed, conf)
           != NGX_OK)
    {
        return NULL;
    }

    if (ngx_http_sluice_packed_done(&packed) != NGX_OK) {
        ngx_str_set(words, "the packed configuration is damaged");
        return NULL;
    }

    return conf;
}


static ngx_int_t
ngx_http_sluice_key_auth_compile_names(ngx_pool_t *pool,
    ngx_http_sluice_packed_t *packed, ngx_http_sluice_key_auth_t *conf)
{
    ngx_str_t   plain;
    ngx_uint_t  i;

    conf->nelts = ngx_http_sluice_packed_count(packed);

    conf->names = ngx_pcalloc(pool, (conf->nelts + 1)
                              * sizeof(ngx_http_sluice_key_auth_name_t));
    if (conf->names == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < conf->nelts; i++) {
        ngx_http_sluice_packed_text(packed, &plain);

        if (ngx_http_sluice_key_auth_compile_name(pool, &plain,
                                                  &conf->names[i])
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_key_auth_compile_name(ngx_pool_t *pool, ngx_str_t *plain,
    ngx_http_sluice_key_auth_name_t *name)
{
    u_char  *p;
    size_t   i;

    p = ngx_pnalloc(pool, 3 * plain->len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    name->plain.data = (const char *) p;
    name->plain.length = (uint32_t) plain->len;
    p = ngx_cpymem(p, plain->data, plain->len);

    name->header.data = p;
    name->header.len = plain->len;
    ngx_strlow(p, plain->data, plain->len);
    p += plain->len;

    name->dashed.data = p;

    for (i = 0; i < plain->len; i++) {

        if (name->header.data[i] == '_') {
            name->dashed.len = plain->len;
            p[i] = '-';

        } else {
            p[i] = name->header.data[i];
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_key_auth_copy(ngx_pool_t *pool,
    ngx_http_sluice_packed_t *packed, ngx_str_t *copy)
{
    ngx_str_t  text;

    ngx_http_sluice_packed_text(packed, &text);

    if (text.data == NULL) {
        return NGX_OK;
    }

    copy->len = text.len;
    copy->data = ngx_pnalloc(pool, text.len + 1);
    if (copy->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(copy->data, text.data, text.len);

    return NGX_OK;
}


/* with an anonymous consumer, several such plugins mean: one is enough */

static ngx_int_t
ngx_http_sluice_key_auth_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    ngx_http_sluice_key_auth_t  *conf = data;

    ngx_int_t  rc, hidden;
    ngx_str_t  key, words;

    if ((r->method == NGX_HTTP_OPTIONS
         && !(conf->flags & NGX_HTTP_SLUICE_KEY_AUTH_PREFLIGHT))
        || (conf->anonymous.data && ctx->credential.len))
    {
        rc = ngx_http_sluice_key_auth_hide(r, conf);

        if (rc == NGX_ERROR) {
            return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                          NULL);
        }

        return rc;
    }

    rc = ngx_http_sluice_key_auth_find(r, conf, &key, &words);

    if (rc == NGX_OK || (rc == NGX_DECLINED && conf->anonymous.data)) {

        hidden = ngx_http_sluice_key_auth_hide(r, conf);

        if (hidden != NGX_OK) {
            rc = hidden;
        }
    }

    if (rc == NGX_ERROR) {
        return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
    }

    if (rc == NGX_OK) {
        words = ngx_http_sluice_key_auth_wrong;
        rc = ngx_http_sluice_key_auth_identify(r, ctx, &key);
    }

    if (rc != NGX_DECLINED) {
        return rc;
    }

    return conf->anonymous.data
           ? ngx_http_sluice_key_auth_anonymous(r, ctx, conf)
           : ngx_http_sluice_key_auth_refuse(r, conf, &words);
}


/* NGX_DECLINED: nobody has this key; else as an access handler */

static ngx_int_t
ngx_http_sluice_key_auth_identify(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_str_t *key)
{
    int                  rc;
    sluice_core_found_t  consumer, credential;

    rc = sluice_images_credential(ngx_http_sluice_key_auth_kind.data,
                                  ngx_http_sluice_key_auth_kind.len,
                                  key->data, key->len, &credential);

    if (rc == SLUICE_CORE_OK) {
        rc = sluice_images_by_slot(SLUICE_CORE_CONSUMER,
                                   sluice_core_number(
                                       &credential,
                                       SLUICE_CORE_CREDENTIAL_CONSUMER),
                                   &consumer);
    }

    if (rc == SLUICE_CORE_NONE) {
        return NGX_DECLINED;
    }

    if (rc != SLUICE_CORE_OK) {
        return ngx_http_sluice_key_auth_unreadable(r);
    }

    if (ngx_http_sluice_authenticate(r, ctx, &consumer, &credential)
        != NGX_OK)
    {
        return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_key_auth_anonymous(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_key_auth_t *conf)
{
    int                   rc;
    u_char               *p;
    ngx_str_t             words;
    sluice_core_found_t   consumer;

    rc = ngx_http_sluice_key_auth_consumer(&conf->anonymous, &consumer);

    if (rc == SLUICE_CORE_OK) {

        if (ngx_http_sluice_authenticate(r, ctx, &consumer, NULL) == NGX_OK) {
            return NGX_OK;
        }

        return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
    }

    if (rc != SLUICE_CORE_NONE) {
        return ngx_http_sluice_key_auth_unreadable(r);
    }

    words.len = sizeof("anonymous consumer  is configured but doesn't exist")
                - 1 + conf->anonymous.len;

    words.data = ngx_pnalloc(r->pool, words.len);
    if (words.data == NULL) {
        return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
    }

    p = ngx_sprintf(words.data, "anonymous consumer %V is configured but "
                    "doesn't exist", &conf->anonymous);
    words.len = p - words.data;

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "key-auth: %V", &words);

    return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, &words);
}


/* by its id or by its name, in what is published now */

static int
ngx_http_sluice_key_auth_consumer(ngx_str_t *name,
    sluice_core_found_t *consumer)
{
    int  rc;

    rc = sluice_images_refresh();

    if (rc != SLUICE_CORE_OK
        || ngx_http_sluice_identity_find(name, consumer) == NGX_OK)
    {
        return rc;
    }

    return sluice_images_by_key(SLUICE_CORE_CONSUMER, name->data, name->len,
                                consumer);
}


/* it does not know what was revoked */

static ngx_int_t
ngx_http_sluice_key_auth_unreadable(ngx_http_request_t *r)
{
    ngx_str_t  words = ngx_string("the configuration cannot be read");

    return ngx_http_sluice_answer(r, NGX_HTTP_SERVICE_UNAVAILABLE, &words);
}


static ngx_int_t
ngx_http_sluice_key_auth_refuse(ngx_http_request_t *r,
    ngx_http_sluice_key_auth_t *conf, ngx_str_t *words)
{
    ngx_table_elt_t  *h;

    if (r->headers_out.www_authenticate) {
        r->headers_out.www_authenticate->hash = 0;
    }

    h = ngx_http_sluice_header_list_push(&r->headers_out.headers, r->pool);

    if (h == NULL) {
        return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
    }

    h->hash = 1;
    ngx_str_set(&h->key, "WWW-Authenticate");
    h->value = conf->challenge;

    r->headers_out.www_authenticate = h;

    return ngx_http_sluice_answer(r, NGX_HTTP_UNAUTHORIZED, words);
}
