
/*
 * Lists of revoked client certificates (ngx_http_sluice_crl.h).
 */


#include "ngx_http_sluice_crl.h"
#include "ngx_http_sluice_tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <stdatomic.h>


/*
 * Of one file, as lib/sluice/ffi/crl.lua: some 300,000 certificates.  Each
 * verification reads all of a list to check its signature.
 */

#define NGX_HTTP_SLUICE_CRL_SIZE  16777216     /* bytes */


static ngx_int_t ngx_http_sluice_crl_load(ngx_conf_t *cf, ngx_str_t *path,
    ngx_str_t *text);
static ngx_int_t ngx_http_sluice_crl_read(ngx_conf_t *cf, ngx_str_t *path,
    ngx_fd_t fd, ngx_str_t *text);
static STACK_OF(X509_CRL) *ngx_http_sluice_crl_new(ngx_pool_t *pool);
static void ngx_http_sluice_crl_free(void *data);
static ngx_int_t ngx_http_sluice_crl_parse(STACK_OF(X509_CRL) *crls,
    const ngx_str_t *pem);
static ngx_int_t ngx_http_sluice_crl_push(STACK_OF(X509_CRL) *crls,
    X509_CRL *crl);
static ngx_int_t ngx_http_sluice_crl_sort(STACK_OF(X509_CRL) *crls);


_Atomic uint64_t  *ngx_http_sluice_crl_live;


char *
ngx_http_sluice_crl(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    u_char                       digest[SHA256_DIGEST_LENGTH];
    uint64_t                     word;
    ngx_int_t                    rc;
    ngx_str_t                   *path, text;
    ngx_http_sluice_crl_conf_t  *ccf;

    ccf = ngx_http_sluice_set_conf(conf, cmd);
    path = (ngx_str_t *) cf->args->elts + 1;

    if (ccf->crls == NULL) {
        ccf->crls = ngx_http_sluice_crl_new(cf->pool);

        if (ccf->crls == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_conf_full_name(cf->cycle, path, 1) != NGX_OK
        || ngx_http_sluice_crl_load(cf, path, &text) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    (void) SHA256(text.data, text.len, digest);
    ngx_memcpy(&word, digest, sizeof(word));
    ccf->digest = ccf->digest * 31 + word;

    rc = ngx_http_sluice_crl_parse(ccf->crls, &text);

    ngx_free(text.data);

    if (rc == NGX_OK) {
        rc = ngx_http_sluice_crl_sort(ccf->crls);
    }

    if (rc == NGX_DECLINED) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is not complete revocation lists in PEM",
                           path);
    }

    return rc == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* A pipe is not waited for. */

static ngx_int_t
ngx_http_sluice_crl_load(ngx_conf_t *cf, ngx_str_t *path, ngx_str_t *text)
{
    ngx_fd_t   fd;
    ngx_int_t  rc;

    fd = ngx_open_file(path->data, NGX_FILE_RDONLY|NGX_FILE_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", path);
        return NGX_ERROR;
    }

    rc = ngx_http_sluice_crl_read(cf, path, fd, text);

    (void) ngx_close_file(fd);

    return rc;
}


/* What is written meanwhile is not waited for either: it is cut, or wrong. */

static ngx_int_t
ngx_http_sluice_crl_read(ngx_conf_t *cf, ngx_str_t *path, ngx_fd_t fd,
    ngx_str_t *text)
{
    size_t           size;
    ssize_t          n;
    ngx_file_info_t  info;

    if (ngx_fd_info(fd, &info) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_fd_info_n " \"%V\" failed", path);
        return NGX_ERROR;
    }

    if (!ngx_is_file(&info)
        || ngx_file_size(&info) > NGX_HTTP_SLUICE_CRL_SIZE)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is not a regular file of at most %d bytes",
                           path, NGX_HTTP_SLUICE_CRL_SIZE);
        return NGX_ERROR;
    }

    size = (size_t) ngx_file_size(&info);

    text->len = 0;
    text->data = ngx_alloc(size + 1, cf->log);

    if (text->data == NULL) {
        return NGX_ERROR;
    }

    while (text->len < size) {
        n = ngx_read_fd(fd, text->data + text->len, size - text->len);

        if (n == -1) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                               ngx_read_fd_n " \"%V\" failed", path);
            ngx_free(text->data);
            return NGX_ERROR;
        }

        if (n == 0) {
            break;
        }

        text->len += (size_t) n;
    }

    return NGX_OK;
}


/* The configuration is taken: what it was made of is what counts. */

void
ngx_http_sluice_crl_init_module(ngx_http_sluice_crl_conf_t *ccf)
{
    _Atomic uint64_t  *live;

    live = ngx_http_sluice_crl_live;

    if (live) {
        atomic_store(live, ccf->digest);
    }
}


ngx_uint_t
ngx_http_sluice_crl_outdated(void)
{
    _Atomic uint64_t            *live;
    ngx_http_sluice_crl_conf_t  *ccf;

    if (!ngx_exiting && !ngx_quit) {
        return 0;
    }

    live = ngx_http_sluice_crl_live;
    ccf = ngx_http_sluice_cycle_conf(ngx_cycle, crl);

    return live && atomic_load(live) != ccf->digest;
}


/* For a worker that begins to leave. */

ngx_uint_t
ngx_http_sluice_crl_ends(ngx_connection_t *c)
{
    ngx_http_sluice_tls_verified_t  *verified;

    verified = c->ssl ? ngx_http_sluice_tls_verified(c) : NULL;

    return verified && verified->until && ngx_http_sluice_crl_outdated();
}


ngx_int_t
ngx_http_sluice_crl_get(ngx_pool_t *pool, const ngx_str_t *pem,
    STACK_OF(X509_CRL) **crls)
{
    int                          i;
    X509_CRL                    *crl;
    ngx_http_sluice_crl_conf_t  *ccf;

    ccf = ngx_http_sluice_cycle_conf(ngx_cycle, crl);

    if (pem->data == NULL) {

        /* the cycle outlives its workers' pools */

        *crls = ccf->crls;
        return NGX_OK;
    }

    *crls = ngx_http_sluice_crl_new(pool);
    if (*crls == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < sk_X509_CRL_num(ccf->crls); i++) {
        crl = sk_X509_CRL_value(ccf->crls, i);

        if (!X509_CRL_up_ref(crl)
            || ngx_http_sluice_crl_push(*crls, crl) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return ngx_http_sluice_crl_parse(*crls, pem);
}


static STACK_OF(X509_CRL) *
ngx_http_sluice_crl_new(ngx_pool_t *pool)
{
    ngx_pool_cleanup_t  *cleanup;

    cleanup = ngx_pool_cleanup_add(pool, 0);
    if (cleanup == NULL) {
        return NULL;
    }

    cleanup->data = sk_X509_CRL_new_null();
    if (cleanup->data == NULL) {
        return NULL;
    }

    cleanup->handler = ngx_http_sluice_crl_free;

    return cleanup->data;
}


static void
ngx_http_sluice_crl_free(void *data)
{
    sk_X509_CRL_pop_free(data, X509_CRL_free);
}


/*
 * A delta list (RFC 5280, section 5.2.4) is refused: OpenSSL takes it for all
 * that is revoked, in place of the list that it adds to.
 */

static ngx_int_t
ngx_http_sluice_crl_parse(STACK_OF(X509_CRL) *crls, const ngx_str_t *pem)
{
    BIO        *bio;
    X509_CRL   *crl;
    ngx_int_t   rc;
    ngx_uint_t  n;

    bio = BIO_new_mem_buf(pem->data, (int) pem->len);
    if (bio == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_OK;
    n = 0;

    while (rc == NGX_OK
           && (crl = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL)
    {
        if (X509_CRL_get_ext_by_NID(crl, NID_delta_crl, -1) >= 0) {
            X509_CRL_free(crl);
            rc = NGX_DECLINED;
            break;
        }

        rc = ngx_http_sluice_crl_push(crls, crl);
        n++;
    }

    /* one that cannot be read hides those behind it */

    if (rc == NGX_OK
        && (n == 0
            || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE))
    {
        rc = NGX_DECLINED;
    }

    BIO_free(bio);
    ERR_clear_error();

    return rc;
}


/* Takes the caller's reference. */

static ngx_int_t
ngx_http_sluice_crl_push(STACK_OF(X509_CRL) *crls, X509_CRL *crl)
{
    if (!sk_X509_CRL_push(crls, crl)) {
        X509_CRL_free(crl);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * OpenSSL sorts a list when it is first asked for a number: here that is once
 * for all workers, in memory that they share.
 */

static ngx_int_t
ngx_http_sluice_crl_sort(STACK_OF(X509_CRL) *crls)
{
    int            i;
    ASN1_INTEGER  *number;
    X509_REVOKED  *revoked;

    number = ASN1_INTEGER_new();
    if (number == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < sk_X509_CRL_num(crls); i++) {
        (void) X509_CRL_get0_by_serial(sk_X509_CRL_value(crls, i), &revoked,
                                       number);
    }

    ASN1_INTEGER_free(number);

    return NGX_OK;
}
