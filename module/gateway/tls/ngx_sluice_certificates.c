
/*
 * What this worker has parsed of certificates (ngx_sluice_certificates.h).
 */


#include "ngx_sluice_images.h"
#include "ngx_sluice_certificates.h"

#include <openssl/sha.h>


#define NGX_SLUICE_CERTIFICATES_BUCKETS  16384


/* One revision of an entity; of a set of CAs, a digest of theirs. */

typedef struct {
    u_char       store[16];
    uint64_t     revision;
    uint32_t     slot;
    uint32_t     generation;
    uint64_t     kind;
} ngx_sluice_certificates_key_t;


typedef struct ngx_sluice_certificates_entry_s
    ngx_sluice_certificates_entry_t;

struct ngx_sluice_certificates_entry_s {
    ngx_queue_t                       queue;     /* the last used first */
    ngx_sluice_certificates_entry_t  *next;      /* of its bucket */
    u_char                            key[SHA256_DIGEST_LENGTH];
    size_t                            size;
    ngx_sluice_certificate_t          certificate;
    ngx_sluice_authorities_t          authorities;
};


static ngx_int_t ngx_sluice_certificates_view(const sluice_core_view_t **view,
    ngx_log_t *log);
static sluice_core_found_t ngx_sluice_certificates_find_sni(
    const sluice_core_view_t *view, const ngx_str_t *name);
static ngx_int_t ngx_sluice_certificates_get(const sluice_core_view_t *view,
    const sluice_core_found_t *found,
    const ngx_sluice_certificate_t **certificate, ngx_log_t *log);
static ngx_int_t ngx_sluice_certificates_build(
    const sluice_core_found_t *found, ngx_uint_t count,
    ngx_sluice_authorities_t *authorities, ngx_log_t *log);
static ngx_int_t ngx_sluice_certificates_add(
    ngx_sluice_authorities_t *authorities, X509 *x509);
static void ngx_sluice_certificates_key(ngx_sluice_certificates_key_t *key,
    const sluice_core_view_t *view, const sluice_core_found_t *found);
static ngx_sluice_certificates_entry_t *ngx_sluice_certificates_find(
    const u_char *key);
static ngx_sluice_certificates_entry_t *ngx_sluice_certificates_new(
    const u_char *key, size_t size);
static void ngx_sluice_certificates_drop(
    ngx_sluice_certificates_entry_t *entry);
static void ngx_sluice_authorities_free(ngx_sluice_authorities_t *authorities);
static ngx_sluice_certificates_entry_t **ngx_sluice_certificates_bucket(
    const u_char *key);


static ngx_sluice_certificates_entry_t
    *ngx_sluice_certificates_buckets[NGX_SLUICE_CERTIFICATES_BUCKETS];
static ngx_queue_t  ngx_sluice_certificates_used;
static size_t       ngx_sluice_certificates_bytes;


ngx_int_t
ngx_sluice_certificates_by_sni(const ngx_str_t *name,
    const ngx_sluice_certificate_t **certificate, ngx_log_t *log)
{
    ngx_int_t                  rc;
    sluice_core_found_t        sni, found;
    const sluice_core_view_t  *view;

    rc = ngx_sluice_certificates_view(&view, log);
    if (rc != NGX_OK) {
        return rc;
    }

    sni = ngx_sluice_certificates_find_sni(view, name);

    if (sni.record == NULL) {
        return NGX_DECLINED;
    }

    found = sluice_core_by_slot(view, SLUICE_CORE_CERTIFICATE,
                                sluice_core_number(&sni,
                                                SLUICE_CORE_SNI_CERTIFICATE));

    return ngx_sluice_certificates_get(view, &found, certificate, log);
}


ngx_int_t
ngx_sluice_certificates_by_id(const u_char *id,
    const ngx_sluice_certificate_t **certificate, ngx_log_t *log)
{
    sluice_core_found_t        found;
    const sluice_core_view_t  *view;

    view = sluice_images_view();
    if (view == NULL) {
        return NGX_ERROR;
    }

    found = sluice_core_by_id(view, SLUICE_CORE_CERTIFICATE, id);

    return ngx_sluice_certificates_get(view, &found, certificate, log);
}


ngx_int_t
ngx_sluice_certificates_authorities(const u_char *ids, ngx_uint_t count,
    const ngx_sluice_authorities_t **authorities, ngx_log_t *log)
{
    u_char                            digest[SHA256_DIGEST_LENGTH];
    ngx_int_t                         rc;
    ngx_uint_t                        i;
    ngx_sluice_authorities_t          made;
    sluice_core_found_t              *found;
    const sluice_core_view_t         *view;
    ngx_sluice_certificates_key_t    *keys;
    ngx_sluice_certificates_entry_t  *entry;

    view = sluice_images_view();
    if (view == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_OK;
    found = ngx_alloc(count * (sizeof(*found) + sizeof(*keys)), log);
    if (found == NULL) {
        return NGX_ERROR;
    }

    keys = (ngx_sluice_certificates_key_t *) (found + count);

    for (i = 0; i < count; i++) {
        found[i] = sluice_core_by_id(view, SLUICE_CORE_CA_CERTIFICATE,
                                     ids + i * NGX_SLUICE_CERTIFICATES_ID);

        if (found[i].record == NULL) {
            ngx_log_error(NGX_LOG_ERR, log, 0,
                          "sluice: a CA certificate is not there");
            ngx_free(found);
            return NGX_ERROR;
        }

        ngx_sluice_certificates_key(&keys[i], view, &found[i]);
    }

    (void) SHA256((u_char *) keys, count * sizeof(*keys), digest);

    entry = ngx_sluice_certificates_find(digest);

    if (entry == NULL) {
        rc = ngx_sluice_certificates_build(found, count, &made, log);

        if (rc == NGX_OK) {
            entry = ngx_sluice_certificates_new(digest, made.size);

            if (entry == NULL) {
                ngx_sluice_authorities_free(&made);
                rc = NGX_ERROR;

            } else {
                entry->authorities = made;
            }
        }
    }

    ngx_free(found);

    if (rc == NGX_OK) {
        *authorities = &entry->authorities;
    }

    return rc;
}


static ngx_int_t
ngx_sluice_certificates_view(const sluice_core_view_t **view, ngx_log_t *log)
{
    int  rc;

    rc = ngx_sluice_images_refresh();

    if (rc == SLUICE_CORE_NONE) {
        return NGX_DECLINED;
    }

    if (rc != SLUICE_CORE_OK) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "sluice: what is published cannot be mapped (%s): there "
                      "is no certificate", sluice_core_word(rc));
        return NGX_ERROR;
    }

    *view = sluice_images_view();

    return NGX_OK;
}


static sluice_core_found_t
ngx_sluice_certificates_find_sni(const sluice_core_view_t *view,
    const ngx_str_t *name)
{
    u_char               wild[NGX_SLUICE_CERTIFICATES_NAME + 1], *dot, *last;
    size_t               length;
    sluice_core_found_t  found;

    ngx_memzero(&found, sizeof(sluice_core_found_t));

    last = name->data + name->len;

    if (name->len && name->len <= NGX_SLUICE_CERTIFICATES_NAME) {
        found = sluice_core_by_key(view, SLUICE_CORE_SNI, name->data,
                                   (uint32_t) name->len);

        dot = ngx_strlchr(name->data, last, '.');

        if (found.record == NULL && dot) {
            length = last - dot;
            wild[0] = '*';
            ngx_memcpy(wild + 1, dot, length);
            found = sluice_core_by_key(view, SLUICE_CORE_SNI, wild,
                                       (uint32_t) length + 1);
        }

        while (dot && last[-1] != '.') {
            last--;
        }

        if (found.record == NULL && dot) {
            length = last - name->data;
            ngx_memcpy(wild, name->data, length);
            wild[length] = '*';
            found = sluice_core_by_key(view, SLUICE_CORE_SNI, wild,
                                       (uint32_t) length + 1);
        }
    }

    if (found.record == NULL) {
        found = sluice_core_by_key(view, SLUICE_CORE_SNI, "*", 1);
    }

    return found;
}


static ngx_int_t
ngx_sluice_certificates_get(const sluice_core_view_t *view,
    const sluice_core_found_t *found,
    const ngx_sluice_certificate_t **certificate, ngx_log_t *log)
{
    u_char                            digest[SHA256_DIGEST_LENGTH];
    ngx_sluice_certificate_t          made;
    ngx_sluice_certificates_key_t     key;
    ngx_sluice_certificates_entry_t  *entry;

    if (found->record == NULL) {
        return NGX_DECLINED;
    }

    ngx_sluice_certificates_key(&key, view, found);
    ngx_memzero(digest, sizeof(digest));
    (void) SHA256((u_char *) &key, sizeof(key), digest);

    entry = ngx_sluice_certificates_find(digest);

    if (entry == NULL) {

        if (ngx_sluice_certificate_parse(found, &made, log) != NGX_OK) {
            return NGX_ERROR;
        }

        entry = ngx_sluice_certificates_new(digest, made.size);

        if (entry == NULL) {
            ngx_sluice_certificate_free(&made);
            return NGX_ERROR;
        }

        entry->certificate = made;
    }

    *certificate = &entry->certificate;

    return NGX_OK;
}


static ngx_int_t
ngx_sluice_certificates_build(const sluice_core_found_t *found,
    ngx_uint_t count, ngx_sluice_authorities_t *authorities, ngx_log_t *log)
{
    X509        *x509;
    ngx_int_t    rc;
    ngx_uint_t   i;

    authorities->store = X509_STORE_new();
    authorities->names = sk_X509_NAME_new_null();
    authorities->size = 0;

    rc = authorities->store && authorities->names ? NGX_OK : NGX_ERROR;

    for (i = 0; i < count && rc == NGX_OK; i++) {
        x509 = ngx_sluice_certificate_parse_authority(&found[i], log);

        rc = x509 ? ngx_sluice_certificates_add(authorities, x509) : NGX_ERROR;

        X509_free(x509);

        authorities->size += NGX_SLUICE_CERTIFICATES_SIZE(
               sluice_core_text(&found[i], SLUICE_CORE_CA_CERTIFICATE_CERT)
               .length);
    }

    if (rc != NGX_OK) {
        ngx_sluice_authorities_free(authorities);
    }

    return rc;
}


static ngx_int_t
ngx_sluice_certificates_add(ngx_sluice_authorities_t *authorities, X509 *x509)
{
    X509_NAME  *name;

    if (!X509_STORE_add_cert(authorities->store, x509)) {
        return NGX_ERROR;
    }

    name = X509_NAME_dup(X509_get_subject_name(x509));

    if (name == NULL || !sk_X509_NAME_push(authorities->names, name)) {
        X509_NAME_free(name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static void
ngx_sluice_certificates_key(ngx_sluice_certificates_key_t *key,
    const sluice_core_view_t *view, const sluice_core_found_t *found)
{
    sluice_core_entity_t    head;
    sluice_core_identity_t  identity;

    sluice_core_identity(&view->base, &identity);
    sluice_core_head(found, &head);

    ngx_memcpy(key->store, identity.store, sizeof(key->store));
    key->revision = head.revision;
    key->slot = head.slot;
    key->generation = head.generation;
    key->kind = head.kind;
}


static ngx_sluice_certificates_entry_t *
ngx_sluice_certificates_find(const u_char *key)
{
    ngx_sluice_certificates_entry_t  *entry;

    for (entry = *ngx_sluice_certificates_bucket(key); entry;
         entry = entry->next)
    {
        if (ngx_memcmp(entry->key, key, sizeof(entry->key)) == 0) {
            ngx_queue_remove(&entry->queue);
            ngx_queue_insert_head(&ngx_sluice_certificates_used,
                                  &entry->queue);
            return entry;
        }
    }

    return NULL;
}


/* Empty, in its place; those that were longest not used make room. */

static ngx_sluice_certificates_entry_t *
ngx_sluice_certificates_new(const u_char *key, size_t size)
{
    ngx_queue_t                       *last;
    ngx_sluice_certificates_entry_t   *entry, **bucket;

    if (ngx_sluice_certificates_bytes == 0) {
        ngx_queue_init(&ngx_sluice_certificates_used);
    }

    while (ngx_sluice_certificates_bytes + size > NGX_SLUICE_CERTIFICATES_BYTES
           && !ngx_queue_empty(&ngx_sluice_certificates_used))
    {
        last = ngx_queue_last(&ngx_sluice_certificates_used);
        entry = ngx_queue_data(last, ngx_sluice_certificates_entry_t, queue);
        ngx_sluice_certificates_drop(entry);
    }

    entry = ngx_alloc(sizeof(*entry), ngx_cycle->log);
    if (entry == NULL) {
        return NULL;
    }

    ngx_memzero(entry, sizeof(*entry));
    ngx_memcpy(entry->key, key, sizeof(entry->key));
    entry->size = size;
    ngx_sluice_certificates_bytes += size;
    ngx_queue_insert_head(&ngx_sluice_certificates_used, &entry->queue);

    bucket = ngx_sluice_certificates_bucket(key);
    entry->next = *bucket;
    *bucket = entry;

    return entry;
}


static void
ngx_sluice_certificates_drop(ngx_sluice_certificates_entry_t *entry)
{
    ngx_sluice_certificates_entry_t  **at;

    for (at = ngx_sluice_certificates_bucket(entry->key); *at != entry;
         at = &(*at)->next)
    {
        /* void */
    }

    *at = entry->next;
    ngx_queue_remove(&entry->queue);
    ngx_sluice_certificates_bytes -= entry->size;

    ngx_sluice_certificate_free(&entry->certificate);
    ngx_sluice_authorities_free(&entry->authorities);
    ngx_free(entry);
}


static void
ngx_sluice_authorities_free(ngx_sluice_authorities_t *authorities)
{
    X509_STORE_free(authorities->store);
    sk_X509_NAME_pop_free(authorities->names, X509_NAME_free);
}


static ngx_sluice_certificates_entry_t **
ngx_sluice_certificates_bucket(const u_char *key)
{
    uint32_t  hash;

    ngx_memcpy(&hash, key, sizeof(hash));

    return &ngx_sluice_certificates_buckets[
                                  hash % NGX_SLUICE_CERTIFICATES_BUCKETS];
}
