
/*
 * TLS sessions of upstreams (ngx_http_sluice_upstream_sessions.h).
 */


#include "ngx_http_sluice_upstream_sessions.h"


#define NGX_HTTP_SLUICE_UPSTREAM_SESSIONS      1024
#define NGX_HTTP_SLUICE_UPSTREAM_SESSION_TIME  3600   /* seconds */


typedef struct {
    ngx_str_node_t                       node;
    ngx_queue_t                          recent;
    ngx_ssl_session_t                   *session;
    time_t                               since;
    ngx_http_sluice_upstream_identity_t  identity;
} ngx_http_sluice_upstream_session_t;


static ngx_http_sluice_upstream_session_t *
    ngx_http_sluice_upstream_session_lookup(
    const ngx_http_sluice_upstream_identity_t *identity);
static ngx_http_sluice_upstream_session_t *
    ngx_http_sluice_upstream_session_make(
    const ngx_http_sluice_upstream_identity_t *identity);
static uint32_t ngx_http_sluice_upstream_session_hash(
    const ngx_http_sluice_upstream_identity_t *identity);
static void ngx_http_sluice_upstream_session_remove(
    ngx_http_sluice_upstream_session_t *entry);


static ngx_rbtree_t       ngx_http_sluice_upstream_sessions;
static ngx_rbtree_node_t  ngx_http_sluice_upstream_sessions_sentinel;
static ngx_queue_t        ngx_http_sluice_upstream_sessions_recent;
static ngx_uint_t         ngx_http_sluice_upstream_sessions_count;


ngx_int_t
ngx_http_sluice_upstream_identify(
    ngx_http_sluice_upstream_identity_t *identity,
    const ngx_http_sluice_upstream_tls_t *tls, const struct sockaddr *sockaddr,
    socklen_t socklen, const ngx_str_t *name)
{
    int          ok;
    EVP_MD_CTX  *context;

    static const u_char  none[NGX_HTTP_SLUICE_UPSTREAM_TLS_DIGEST];

    context = EVP_MD_CTX_new();
    if (context == NULL) {
        return NGX_ERROR;
    }

    /* all but the last are of a length that is known before */

    ok = EVP_DigestInit_ex(context, EVP_sha256(), NULL)
         && EVP_DigestUpdate(context, tls ? tls->digest : none, sizeof(none))
         && EVP_DigestUpdate(context, &socklen, sizeof(socklen))
         && EVP_DigestUpdate(context, sockaddr, socklen)
         && EVP_DigestUpdate(context, name->data, name->len)
         && EVP_DigestFinal_ex(context, identity->digest, NULL);

    EVP_MD_CTX_free(context);

    return ok ? NGX_OK : NGX_ERROR;
}


ngx_ssl_session_t *
ngx_http_sluice_upstream_session_find(
    const ngx_http_sluice_upstream_identity_t *identity)
{
    ngx_http_sluice_upstream_session_t  *entry;

    entry = ngx_http_sluice_upstream_session_lookup(identity);

    if (entry == NULL) {
        return NULL;
    }

    if (ngx_time() - entry->since >= NGX_HTTP_SLUICE_UPSTREAM_SESSION_TIME) {
        ngx_http_sluice_upstream_session_remove(entry);
        return NULL;
    }

    ngx_queue_remove(&entry->recent);
    ngx_queue_insert_head(&ngx_http_sluice_upstream_sessions_recent,
                          &entry->recent);

    return entry->session;
}


static ngx_http_sluice_upstream_session_t *
ngx_http_sluice_upstream_session_lookup(
    const ngx_http_sluice_upstream_identity_t *identity)
{
    ngx_str_t  key;

    if (ngx_http_sluice_upstream_sessions_count == 0) {
        return NULL;
    }

    key.data = (u_char *) identity->digest;
    key.len = sizeof(identity->digest);

    return (ngx_http_sluice_upstream_session_t *)
               ngx_str_rbtree_lookup(&ngx_http_sluice_upstream_sessions, &key,
                              ngx_http_sluice_upstream_session_hash(identity));
}


static uint32_t
ngx_http_sluice_upstream_session_hash(
    const ngx_http_sluice_upstream_identity_t *identity)
{
    uint32_t  hash;

    ngx_memcpy(&hash, identity->digest, sizeof(hash));

    return hash;
}


void
ngx_http_sluice_upstream_session_put(
    const ngx_http_sluice_upstream_identity_t *identity,
    ngx_ssl_session_t *session, ngx_uint_t resumed)
{
    ngx_http_sluice_upstream_session_t  *entry;

    entry = ngx_http_sluice_upstream_session_lookup(identity);

    if (resumed) {

        /* nothing new was proved: the hour goes on */

        if (entry == NULL) {
            return;
        }

    } else {
        if (entry == NULL) {
            entry = ngx_http_sluice_upstream_session_make(identity);
        }

        if (entry == NULL) {
            return;
        }

        entry->since = ngx_time();
    }

    if (entry->session) {
        SSL_SESSION_free(entry->session);
    }

    SSL_SESSION_up_ref(session);
    entry->session = session;
}


static ngx_http_sluice_upstream_session_t *
ngx_http_sluice_upstream_session_make(
    const ngx_http_sluice_upstream_identity_t *identity)
{
    ngx_http_sluice_upstream_session_t  *entry;

    if (ngx_http_sluice_upstream_sessions.root == NULL) {
        ngx_rbtree_init(&ngx_http_sluice_upstream_sessions,
                        &ngx_http_sluice_upstream_sessions_sentinel,
                        ngx_str_rbtree_insert_value);
        ngx_queue_init(&ngx_http_sluice_upstream_sessions_recent);
    }

    if (ngx_http_sluice_upstream_sessions_count
        == NGX_HTTP_SLUICE_UPSTREAM_SESSIONS)
    {
        ngx_http_sluice_upstream_session_remove(
            ngx_queue_data(
                ngx_queue_last(&ngx_http_sluice_upstream_sessions_recent),
                ngx_http_sluice_upstream_session_t, recent));
    }

    entry = ngx_calloc(sizeof(ngx_http_sluice_upstream_session_t),
                       ngx_cycle->log);
    if (entry == NULL) {
        return NULL;
    }

    entry->identity = *identity;
    entry->node.str.data = entry->identity.digest;
    entry->node.str.len = sizeof(entry->identity.digest);
    entry->node.node.key = ngx_http_sluice_upstream_session_hash(identity);

    ngx_rbtree_insert(&ngx_http_sluice_upstream_sessions, &entry->node.node);
    ngx_queue_insert_head(&ngx_http_sluice_upstream_sessions_recent,
                          &entry->recent);
    ngx_http_sluice_upstream_sessions_count++;

    return entry;
}


void
ngx_http_sluice_upstream_session_drop(
    const ngx_http_sluice_upstream_identity_t *identity)
{
    ngx_http_sluice_upstream_session_t  *entry;

    entry = ngx_http_sluice_upstream_session_lookup(identity);

    if (entry) {
        ngx_http_sluice_upstream_session_remove(entry);
    }
}


static void
ngx_http_sluice_upstream_session_remove(
    ngx_http_sluice_upstream_session_t *entry)
{
    ngx_queue_remove(&entry->recent);
    ngx_rbtree_delete(&ngx_http_sluice_upstream_sessions, &entry->node.node);
    ngx_http_sluice_upstream_sessions_count--;

    SSL_SESSION_free(entry->session);
    ngx_free(entry);
}
