
/*
 * TLS to a service's upstreams (ngx_http_sluice_upstream_tls.h).
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_upstream_tls.h"


/* What it is made of, as the image has it: good until the event loop. */

typedef struct {
    uint32_t                      flags;      /* of the service */
    sluice_core_found_t           client;     /* record NULL: none */
    const u_char                 *ids;        /* of CAs */
    ngx_uint_t                    count;
} ngx_http_sluice_upstream_tls_source_t;


/* Of a digest; zeros for what there is not. */

typedef struct {
    uint8_t                       id[16];
    uint64_t                      revision;
} ngx_http_sluice_upstream_tls_part_t;

typedef struct {
    uint8_t                              store[16];
    uint32_t                             verify;
    uint32_t                             depth;
    ngx_http_sluice_upstream_tls_part_t  client;
    ngx_http_sluice_upstream_tls_part_t  trusted[];
} ngx_http_sluice_upstream_tls_parts_t;


static void ngx_http_sluice_upstream_tls_free_store(void *data);
static ngx_int_t ngx_http_sluice_upstream_tls_gather(
    ngx_http_sluice_upstream_tls_source_t *source,
    sluice_core_found_t *service);
static ngx_int_t ngx_http_sluice_upstream_tls_read_client(
    ngx_http_sluice_upstream_tls_t *tls,
    ngx_http_sluice_upstream_tls_source_t *source, ngx_pool_t *pool);
static ngx_int_t ngx_http_sluice_upstream_tls_read_trusted(
    ngx_http_sluice_upstream_tls_t *tls,
    ngx_http_sluice_upstream_tls_source_t *source, ngx_pool_t *pool);
static ngx_int_t ngx_http_sluice_upstream_tls_digest(
    ngx_http_sluice_upstream_tls_t *tls,
    ngx_http_sluice_upstream_tls_source_t *source, ngx_pool_t *pool);
static void ngx_http_sluice_upstream_tls_note(
    ngx_http_sluice_upstream_tls_part_t *part, sluice_core_found_t *found);
static void ngx_http_sluice_upstream_tls_free(void *data);

/* Read once, by the master: workers share the pages. */

char *
ngx_http_sluice_upstream_tls_trusted(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_str_t                            *value;
    ngx_pool_cleanup_t                   *cln;
    ngx_http_sluice_upstream_tls_conf_t  *tcf;

    tcf = ngx_http_sluice_set_conf(conf, cmd);
    value = cf->args->elts;

    if (tcf->trusted == NULL) {
        cln = ngx_pool_cleanup_add(cf->pool, 0);
        if (cln == NULL) {
            return NGX_CONF_ERROR;
        }

        tcf->trusted = X509_STORE_new();
        if (tcf->trusted == NULL) {
            return NGX_CONF_ERROR;
        }

        cln->handler = ngx_http_sluice_upstream_tls_free_store;
        cln->data = tcf->trusted;
    }

    if (ngx_conf_full_name(cf->cycle, &value[1], 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (X509_STORE_load_file(tcf->trusted, (char *) value[1].data) != 1) {
        ngx_ssl_error(NGX_LOG_EMERG, cf->log, 0,
                      "cannot load CA certificates from \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    /* it may leave errors behind where it succeeds */

    ERR_clear_error();

    return NGX_CONF_OK;
}


static void
ngx_http_sluice_upstream_tls_free_store(void *data)
{
    X509_STORE_free(data);
}


ngx_int_t
ngx_http_sluice_upstream_tls_read(ngx_pool_t *pool,
    sluice_core_found_t *service, ngx_http_sluice_upstream_tls_t **result)
{
    ngx_int_t                               rc;
    ngx_pool_cleanup_t                     *cln;
    ngx_http_sluice_upstream_tls_t         *tls;
    ngx_http_sluice_upstream_tls_source_t   source;

    *result = NULL;

    rc = ngx_http_sluice_upstream_tls_gather(&source, service);

    if (rc != NGX_OK) {
        return rc;
    }

    if (!(source.flags & SLUICE_SERVICE_VERIFY)
        && source.client.record == NULL)
    {
        return NGX_OK;
    }

    tls = ngx_pcalloc(pool, sizeof(ngx_http_sluice_upstream_tls_t));
    if (tls == NULL) {
        return NGX_ERROR;
    }

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_sluice_upstream_tls_free;
    cln->data = tls;

    rc = ngx_http_sluice_upstream_tls_read_client(tls, &source, pool);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_upstream_tls_read_trusted(tls, &source, pool);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_upstream_tls_digest(tls, &source, pool);
    }

    if (rc == NGX_OK) {
        *result = tls;
    }

    return rc;
}


/*
 * gateway/image/service_tls.lua writes the text: the id of the client
 * certificate, zeros where there is none, then those of CAs.
 */

static ngx_int_t
ngx_http_sluice_upstream_tls_gather(
    ngx_http_sluice_upstream_tls_source_t *source,
    sluice_core_found_t *service)
{
    uint32_t                   slot;
    sluice_core_text_t         text, host;
    sluice_core_found_t        upstream;
    const sluice_core_view_t  *view;

    static const u_char  none[NGX_SLUICE_CERTIFICATES_ID];

    ngx_memzero(source, sizeof(ngx_http_sluice_upstream_tls_source_t));

    source->flags = sluice_core_number(service, SLUICE_CORE_SERVICE_FLAGS);

    if (!(source->flags & SLUICE_SERVICE_HTTPS)) {
        return NGX_OK;
    }

    view = sluice_images_view();
    text = sluice_core_text(service, SLUICE_CORE_SERVICE_TLS);

    if (text.length >= NGX_SLUICE_CERTIFICATES_ID) {
        source->ids = (u_char *) text.data + NGX_SLUICE_CERTIFICATES_ID;
        source->count = text.length / NGX_SLUICE_CERTIFICATES_ID - 1;

        if (ngx_memcmp(text.data, none, sizeof(none)) != 0) {
            source->client = sluice_core_by_id(view, SLUICE_CORE_CERTIFICATE,
                                               (u_char *) text.data);

            return source->client.record ? NGX_OK : NGX_DECLINED;
        }
    }

    host = sluice_core_text(service, SLUICE_CORE_SERVICE_HOST);
    upstream = sluice_core_by_key(view, SLUICE_CORE_UPSTREAM, host.data,
                                  host.length);

    if (upstream.record == NULL) {
        return NGX_OK;
    }

    slot = sluice_core_number(&upstream, SLUICE_CORE_UPSTREAM_CERTIFICATE);

    if (slot == SLUICE_CORE_NOBODY) {
        return NGX_OK;
    }

    source->client = sluice_core_by_slot(view, SLUICE_CORE_CERTIFICATE, slot);

    return source->client.record ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_upstream_tls_read_client(ngx_http_sluice_upstream_tls_t *tls,
    ngx_http_sluice_upstream_tls_source_t *source, ngx_pool_t *pool)
{
    ngx_uint_t                       i;
    sluice_core_entity_t             head;
    ngx_sluice_certificate_pair_t   *pair;
    const ngx_sluice_certificate_t  *client;

    if (source->client.record == NULL) {
        return NGX_OK;
    }

    sluice_core_head(&source->client, &head);

    if (ngx_sluice_certificates_by_id(head.id, &client, pool->log)
        != NGX_OK)
    {
        return NGX_DECLINED;
    }

    for (i = 0; i < client->npairs; i++) {
        pair = &tls->client.pairs[i];

        pair->issuers = X509_chain_up_ref(client->pairs[i].issuers);
        if (pair->issuers == NULL) {
            return NGX_ERROR;
        }

        pair->leaf = client->pairs[i].leaf;
        pair->key = client->pairs[i].key;

        X509_up_ref(pair->leaf);
        EVP_PKEY_up_ref(pair->key);

        tls->client.npairs++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_upstream_tls_read_trusted(ngx_http_sluice_upstream_tls_t *tls,
    ngx_http_sluice_upstream_tls_source_t *source, ngx_pool_t *pool)
{
    uint32_t                              depth;
    const ngx_sluice_authorities_t       *authorities;
    ngx_http_sluice_upstream_tls_conf_t  *conf;

    if (!(source->flags & SLUICE_SERVICE_VERIFY)) {
        return NGX_OK;
    }

    depth = source->flags / SLUICE_SERVICE_DEPTH;

    tls->verify = 1;
    tls->depth = depth ? (int) depth - 1 : NGX_HTTP_SLUICE_UPSTREAM_TLS_DEPTH;

    if (source->count == 0) {
        conf = ngx_http_sluice_cycle_conf(ngx_cycle, upstream_tls);
        tls->trusted = conf->trusted;

    } else if (ngx_sluice_certificates_authorities(source->ids, source->count,
                                                   &authorities, pool->log)
               == NGX_OK)
    {
        tls->trusted = authorities->store;

    } else {
        return NGX_DECLINED;
    }

    if (tls->trusted) {
        X509_STORE_up_ref(tls->trusted);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_upstream_tls_digest(ngx_http_sluice_upstream_tls_t *tls,
    ngx_http_sluice_upstream_tls_source_t *source, ngx_pool_t *pool)
{
    int                                    rc;
    size_t                                 size;
    ngx_uint_t                             i;
    sluice_core_found_t                    found;
    sluice_core_identity_t                 identity;
    const sluice_core_view_t              *view;
    ngx_http_sluice_upstream_tls_parts_t  *parts;

    size = sizeof(ngx_http_sluice_upstream_tls_parts_t)
           + source->count * sizeof(ngx_http_sluice_upstream_tls_part_t);

    parts = ngx_calloc(size, pool->log);
    if (parts == NULL) {
        return NGX_ERROR;
    }

    view = sluice_images_view();
    sluice_core_identity(&view->base, &identity);

    ngx_memcpy(parts->store, identity.store, sizeof(parts->store));
    parts->verify = tls->verify;
    parts->depth = (uint32_t) tls->depth;

    if (source->client.record) {
        ngx_http_sluice_upstream_tls_note(&parts->client, &source->client);
    }

    for (i = 0; i < source->count; i++) {
        found = sluice_core_by_id(view, SLUICE_CORE_CA_CERTIFICATE,
                             source->ids + i * NGX_SLUICE_CERTIFICATES_ID);
        ngx_http_sluice_upstream_tls_note(&parts->trusted[i], &found);
    }

    rc = EVP_Digest(parts, size, tls->digest, NULL, EVP_sha256(), NULL);

    ngx_free(parts);

    return rc == 1 ? NGX_OK : NGX_ERROR;
}


/* found may be nothing: a CA that is not there, and nobody is verified */

static void
ngx_http_sluice_upstream_tls_note(ngx_http_sluice_upstream_tls_part_t *part,
    sluice_core_found_t *found)
{
    sluice_core_entity_t  head;

    if (found->record) {
        sluice_core_head(found, &head);
        ngx_memcpy(part->id, head.id, sizeof(part->id));
        part->revision = head.revision;
    }
}


static void
ngx_http_sluice_upstream_tls_free(void *data)
{
    ngx_http_sluice_upstream_tls_t  *tls = data;

    ngx_sluice_certificate_free(&tls->client);
    X509_STORE_free(tls->trusted);
}
