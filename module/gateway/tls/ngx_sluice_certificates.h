
/*
 * Certificates of the image as OpenSSL has them, and names to certificates.
 *
 *     rc = ngx_sluice_certificates_by_sni(&name, &certificate, log);
 *     if (rc == NGX_OK) {
 *         SSL_use_cert_and_key(ssl, certificate->pairs[0].leaf, ...);
 *     }
 *
 * Each worker parses a certificate at its first use and keeps what was used
 * last: NGX_SLUICE_CERTIFICATES_BYTES in all, certificates and sets of CAs
 * together, whatever number the configuration has.  An entry belongs to one
 * revision of its entity, so a change is seen by the next handshake, and
 * nothing is ever dropped but for room.
 *
 * What a verb gives is good until the event loop is returned to.  OpenSSL
 * counts references: what a connection was given stays while that lives.
 *
 * All look at what is published now.  NGX_OK; NGX_DECLINED: there is none, or
 * nothing is published yet; NGX_ERROR: it cannot be read, or this worker
 * cannot map what is published, which stands in the log.
 */


#ifndef NGX_SLUICE_CERTIFICATES_H_INCLUDED
#define NGX_SLUICE_CERTIFICATES_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include <openssl/ssl.h>

#include "core.h"


/*
 * Of memory that a worker has for them.  One with its key takes 7.5 kilobytes
 * (P-256) or 10.6 (RSA of 2,048 bits), once it has signed; it is counted by
 * the length of its texts.
 */

#define NGX_SLUICE_CERTIFICATES_BYTES  (96 * 1024 * 1024)
#define NGX_SLUICE_CERTIFICATES_SIZE(length)  (6144 + 2 * (size_t) (length))

/* A name in TLS (RFC 6066: that of a host; RFC 1035: at most 255 bytes). */
#define NGX_SLUICE_CERTIFICATES_NAME  255

#define NGX_SLUICE_CERTIFICATES_ID    16     /* bytes */


typedef struct {
    X509            *leaf;
    STACK_OF(X509)  *issuers;      /* as configured; may be empty */
    EVP_PKEY        *key;
} ngx_sluice_certificate_pair_t;


typedef struct {
    ngx_sluice_certificate_pair_t  pairs[2];
    ngx_uint_t                     npairs;   /* 2: of two types of keys */
    size_t                         size;     /* counted, in bytes */
} ngx_sluice_certificate_t;


/* CAs that somebody's certificate may be signed by. */

typedef struct {
    X509_STORE           *store;
    STACK_OF(X509_NAME)  *names;
    size_t                size;
} ngx_sluice_authorities_t;


/*
 * The certificate for a name, in lower case and without a dot at its end: of
 * a.b.c the SNI "a.b.c", "*.b.c", "a.b.*" or "*", in this order (Kong's).  An
 * empty name can only have "*".
 */
ngx_int_t ngx_sluice_certificates_by_sni(const ngx_str_t *name,
    const ngx_sluice_certificate_t **certificate, ngx_log_t *log);

/*
 * These two look at the view that the caller has refreshed: in a request, what
 * was matched and what is compiled for it have to be of one view.
 */

ngx_int_t ngx_sluice_certificates_by_id(const u_char *id,
    const ngx_sluice_certificate_t **certificate, ngx_log_t *log);

/*
 * A set of CA certificates, count ids one behind the other.  One that is not
 * there is an error: fewer CAs than were asked for would be another set.
 */
ngx_int_t ngx_sluice_certificates_authorities(const u_char *ids,
    ngx_uint_t count, const ngx_sluice_authorities_t **authorities,
    ngx_log_t *log);


/*
 * ngx_sluice_certificate_value.c: the text of a field.  NULL: there is none,
 * or nothing that it refers to, which stands in the log.
 */

BIO *ngx_sluice_certificate_value(const sluice_core_found_t *found, int field,
    ngx_log_t *log);

/* ngx_sluice_certificate_decode.c.  NULL: only the long way can tell. */

EVP_PKEY *ngx_sluice_certificate_decode_key(const u_char *data, size_t length);
X509 *ngx_sluice_certificate_decode(const u_char *data, size_t length,
    EVP_PKEY *key);

/* ngx_sluice_certificate_issuers.c: the rest of a text; empty, where none. */

STACK_OF(X509) *ngx_sluice_certificate_issuers(BIO *bio);

/* ngx_sluice_certificate_parse.c */

ngx_int_t ngx_sluice_certificate_parse(const sluice_core_found_t *found,
    ngx_sluice_certificate_t *certificate, ngx_log_t *log);
void ngx_sluice_certificate_free(ngx_sluice_certificate_t *certificate);
X509 *ngx_sluice_certificate_parse_authority(const sluice_core_found_t *found,
    ngx_log_t *log);


#endif /* NGX_SLUICE_CERTIFICATES_H_INCLUDED */
