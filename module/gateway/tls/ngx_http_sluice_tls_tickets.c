
/*
 * Session tickets that every worker can take (ngx_sluice_tickets.h).  OpenSSL
 * writes and reads them: encrypted, then authenticated, as RFC 5077 says.
 */


#include "ngx_http_sluice_tls.h"
#include "ngx_sluice_tickets.h"

#include <openssl/core_names.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>


/* What OpenSSL wants of the callback. */

#define NGX_HTTP_SLUICE_TLS_TICKET_FAILED  (-1)
#define NGX_HTTP_SLUICE_TLS_TICKET_NONE    0
#define NGX_HTTP_SLUICE_TLS_TICKET_TAKEN   1
#define NGX_HTTP_SLUICE_TLS_TICKET_RENEW   2


static int ngx_http_sluice_tls_tickets_key(SSL *ssl, unsigned char *name,
    unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypt);
static int ngx_http_sluice_tls_tickets_set(ngx_sluice_ticket_key_t *key,
    unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypt);


/* Looked up once: OpenSSL 3 would look for it in each handshake. */

static EVP_CIPHER  *ngx_http_sluice_tls_tickets_cipher;


ngx_int_t
ngx_http_sluice_tls_tickets_init(ngx_conf_t *cf, SSL_CTX *ctx)
{
    if (ngx_http_sluice_tls_tickets_cipher == NULL) {
        ngx_http_sluice_tls_tickets_cipher =
                                  EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);

        if (ngx_http_sluice_tls_tickets_cipher == NULL) {
            ngx_ssl_error(NGX_LOG_EMERG, cf->log, 0,
                          "EVP_CIPHER_fetch(\"AES-256-CBC\") failed");
            return NGX_ERROR;
        }
    }

    if (!SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx,
                                              ngx_http_sluice_tls_tickets_key))
    {
        ngx_ssl_error(NGX_LOG_EMERG, cf->log, 0,
                      "SSL_CTX_set_tlsext_ticket_key_evp_cb() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static int
ngx_http_sluice_tls_tickets_key(SSL *ssl, unsigned char *name,
    unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypt)
{
    int                      rc;
    ngx_int_t                found;
    ngx_sluice_ticket_key_t  key;

    if (encrypt && SSL_get0_peer_certificate(ssl)) {
        return NGX_HTTP_SLUICE_TLS_TICKET_NONE;
    }

    if (encrypt) {
        found = ngx_sluice_tickets_current(ngx_time(), &key);

        if (found == NGX_OK) {
            ngx_memcpy(name, key.name, sizeof(key.name));

            if (RAND_bytes(iv, EVP_MAX_IV_LENGTH) != 1) {
                return NGX_HTTP_SLUICE_TLS_TICKET_FAILED;
            }
        }

    } else {
        found = ngx_sluice_tickets_named(ngx_time(), name, &key);
    }

    if (found == NGX_DECLINED) {
        return NGX_HTTP_SLUICE_TLS_TICKET_NONE;
    }

    rc = ngx_http_sluice_tls_tickets_set(&key, iv, cipher, mac, encrypt);

    OPENSSL_cleanse(&key, sizeof(key));

    if (!rc) {
        return NGX_HTTP_SLUICE_TLS_TICKET_FAILED;
    }

    /* clients of TLS 1.3 use a ticket once (RFC 8446, appendix C.4) */

    return found == NGX_AGAIN || SSL_version(ssl) == TLS1_3_VERSION
           ? NGX_HTTP_SLUICE_TLS_TICKET_RENEW
           : NGX_HTTP_SLUICE_TLS_TICKET_TAKEN;
}


static int
ngx_http_sluice_tls_tickets_set(ngx_sluice_ticket_key_t *key,
    unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypt)
{
    OSSL_PARAM  params[3];

    params[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac,
                                                  sizeof(key->mac));
    params[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
                                                 (char *) "SHA256", 0);
    params[2] = OSSL_PARAM_construct_end();

    return EVP_CipherInit_ex2(cipher, ngx_http_sluice_tls_tickets_cipher,
                              key->cipher, iv, encrypt, NULL) == 1
           && EVP_MAC_CTX_set_params(mac, params) == 1;
}
