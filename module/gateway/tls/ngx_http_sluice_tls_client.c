
/*
 * What plugins in Lua ask of a client's TLS (ngx_http_sluice_tls_client.h).
 */


#include "ngx_http_sluice_tls_client.h"


static SSL *ngx_http_sluice_tls_client_of(ngx_http_request_t *r);
static int ngx_http_sluice_tls_client_take(int ok, X509_STORE_CTX *store);
static int ngx_http_sluice_tls_client_write(BIO *bio, SSL *ssl);
static int ngx_http_sluice_tls_client_copy(ngx_pool_t *pool, BIO *bio,
    sluice_core_text_t *pem);
static int ngx_http_sluice_tls_client_name(SSL *ssl, STACK_OF(X509) *issuers);
static int ngx_http_sluice_tls_client_forgets(SSL *ssl, int forward_secure);


int
sluice_tls_client_chain(ngx_http_request_t *r, sluice_core_text_t *pem)
{
    int   rc;
    BIO  *bio;
    SSL  *ssl;

    ssl = ngx_http_sluice_tls_client_of(r);

    if (ssl == NULL) {
        return NGX_DECLINED;
    }

    bio = BIO_new(BIO_s_mem());
    if (bio == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_sluice_tls_client_write(bio, ssl);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_tls_client_copy(r->pool, bio, pem);
    }

    BIO_free(bio);

    return rc;
}


static SSL *
ngx_http_sluice_tls_client_of(ngx_http_request_t *r)
{
    return r && r->connection && r->connection->ssl
           ? r->connection->ssl->connection : NULL;
}


/* on a server the chain that OpenSSL has is without its first one */

static int
ngx_http_sluice_tls_client_write(BIO *bio, SSL *ssl)
{
    int              i, rc;
    X509            *own;
    STACK_OF(X509)  *chain;

    own = SSL_get_peer_certificate(ssl);

    if (own == NULL) {
        return NGX_DECLINED;
    }

    rc = PEM_write_bio_X509(bio, own);
    X509_free(own);

    chain = SSL_get_peer_cert_chain(ssl);

    for (i = 0; rc && i < sk_X509_num(chain); i++) {
        rc = PEM_write_bio_X509(bio, sk_X509_value(chain, i));
    }

    return rc ? NGX_OK : NGX_ERROR;
}


static int
ngx_http_sluice_tls_client_copy(ngx_pool_t *pool, BIO *bio,
    sluice_core_text_t *pem)
{
    long     length;
    char    *data;
    u_char  *copy;

    length = BIO_get_mem_data(bio, &data);

    copy = ngx_pnalloc(pool, length);
    if (copy == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(copy, data, length);

    pem->data = (const char *) copy;
    pem->length = (uint32_t) length;

    return NGX_OK;
}


int
sluice_tls_client_ask(ngx_http_request_t *r, void *issuers)
{
    SSL  *ssl;

    ssl = ngx_http_sluice_tls_client_of(r);

    if (ssl == NULL) {
        return NGX_DECLINED;
    }

    if (issuers && ngx_http_sluice_tls_client_name(ssl, issuers) != NGX_OK) {
        return NGX_ERROR;
    }

    SSL_set_verify(ssl, SSL_VERIFY_PEER, ngx_http_sluice_tls_client_take);

    return NGX_OK;
}


static int
ngx_http_sluice_tls_client_name(SSL *ssl, STACK_OF(X509) *issuers)
{
    int                   i;
    X509_NAME            *name;
    STACK_OF(X509_NAME)  *names;

    names = sk_X509_NAME_new_null();
    if (names == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < sk_X509_num(issuers); i++) {

        name = X509_NAME_dup(X509_get_subject_name(sk_X509_value(issuers, i)));

        if (name == NULL || !sk_X509_NAME_push(names, name)) {
            X509_NAME_free(name);
            sk_X509_NAME_pop_free(names, X509_NAME_free);
            return NGX_ERROR;
        }
    }

    /* the list is the connection's now */

    SSL_set_client_CA_list(ssl, names);

    return NGX_OK;
}


/* who needs it verifies it */

static int
ngx_http_sluice_tls_client_take(int ok, X509_STORE_CTX *store)
{
    return 1;
}


int
sluice_tls_client_forget(ngx_http_request_t *r)
{
    SSL  *ssl;

    ssl = ngx_http_sluice_tls_client_of(r);

    if (ssl == NULL) {
        return NGX_DECLINED;
    }

    /* of TLS 1.3, then of 1.2: neither a ticket nor an id is given */

    (void) SSL_set_num_tickets(ssl, 0);
    (void) SSL_set_options(ssl, SSL_OP_NO_TICKET);

    SSL_set_not_resumable_session_callback(ssl,
                                           ngx_http_sluice_tls_client_forgets);

    return NGX_OK;
}


static int
ngx_http_sluice_tls_client_forgets(SSL *ssl, int forward_secure)
{
    return 1;
}


int
sluice_tls_client_peer(ngx_http_request_t *r, sluice_tls_peer_t *peer)
{
    SSL                   *ssl;
    ngx_connection_t      *c;
    ngx_proxy_protocol_t  *claimed;

    ssl = ngx_http_sluice_tls_client_of(r);

    if (ssl == NULL) {
        return NGX_DECLINED;
    }

    /* that of the request is one that the Lua module has made up */

    c = ngx_ssl_get_connection(ssl);

    if (ngx_connection_local_sockaddr(c, NULL, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_memzero(peer, sizeof(sluice_tls_peer_t));

    peer->address.data = (const char *) c->addr_text.data;
    peer->address.length = (uint32_t) c->addr_text.len;
    peer->port = ngx_inet_get_port(c->sockaddr);
    peer->own_port = ngx_inet_get_port(c->local_sockaddr);

    claimed = c->proxy_protocol;

    if (claimed) {
        peer->claimed.data = (const char *) claimed->src_addr.data;
        peer->claimed.length = (uint32_t) claimed->src_addr.len;
        peer->claimed_port = claimed->src_port;
    }

    return NGX_OK;
}


int
sluice_tls_client_verify(ngx_http_request_t *r, const char *text,
    size_t length)
{
    u_char                 *copy;
    ngx_http_sluice_ctx_t  *ctx;

    ctx = ngx_http_sluice_ctx_make(r);

    if (ctx == NULL) {
        return NGX_ERROR;
    }

    copy = ngx_pnalloc(r->main->pool, length);
    if (copy == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(copy, text, length);

    ctx->client_verify.data = copy;
    ctx->client_verify.len = length;

    return NGX_OK;
}
