
/*
 * Lists of revoked client certificates, for plugins that verify them: those of
 * their configurations, and those of the operator's files.
 *
 *     sluice_crl /etc/ssl/clients.crl;
 *
 * may be there several times.  The master reads a file when it reads
 * nginx.conf, and workers have what it made of it by their fork: they need not
 * be able to read it, and share the pages.
 *
 * A worker that leaves at a reload has the lists of before.  Where other ones
 * are live by then, it verifies nobody any more, and ends connections of
 * clients whom it has verified where they are idle.
 */


#ifndef NGX_HTTP_SLUICE_CRL_H_INCLUDED
#define NGX_HTTP_SLUICE_CRL_H_INCLUDED


#include "ngx_http_sluice_module.h"

#include <openssl/x509.h>


typedef struct {
    STACK_OF(X509_CRL)  *crls;                 /* NULL: there is no file */
    uint64_t             digest;               /* of all files; 0: none */
} ngx_http_sluice_crl_conf_t;


#define NGX_HTTP_SLUICE_CRL_DIRECTIVES(at)                                    \
    { ngx_string("sluice_crl"),                                               \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_http_sluice_crl,                                                    \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      at,                                                                     \
      NULL }


extern const size_t  ngx_http_sluice_crl_at;


char *ngx_http_sluice_crl(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* When a configuration is taken. */
void ngx_http_sluice_crl_init_module(ngx_http_sluice_crl_conf_t *conf);

/*
 * The lists of the files and of a text in PEM, good as long as pool is.  *crls
 * is NULL where there are neither; pem->data is NULL where there is no text.
 * NGX_DECLINED: the text cannot be read, or has a delta list; NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_http_sluice_crl_get(ngx_pool_t *pool, const ngx_str_t *pem,
    STACK_OF(X509_CRL) **crls);

/* Whether this worker leaves, and the lists of its files are not the live. */
ngx_uint_t ngx_http_sluice_crl_outdated(void);


/* Whether a client was verified by lists that are outdated. */
ngx_uint_t ngx_http_sluice_crl_ends(ngx_connection_t *c);


/*
 * A digest of the files whose lists are live, 0: of none; in shared memory.
 * NULL without "sluice_control on" (ngx_sluice_page.c).
 */
extern _Atomic uint64_t  *ngx_http_sluice_crl_live;


#endif /* NGX_HTTP_SLUICE_CRL_H_INCLUDED */
