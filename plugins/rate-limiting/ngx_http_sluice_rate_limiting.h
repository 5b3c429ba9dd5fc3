
/*
 * The rate-limiting plugin, policy local: what its files share.
 * docs/plugins/rate-limiting.md says what it does, meter.h how it counts.
 */


#ifndef NGX_HTTP_SLUICE_RATE_LIMITING_H_INCLUDED
#define NGX_HTTP_SLUICE_RATE_LIMITING_H_INCLUDED


#include "ngx_http_sluice_plugin.h"
#include "meter.h"


#define NGX_HTTP_SLUICE_RATE_TEXT  24        /* bytes of any number */


typedef struct ngx_http_sluice_rate_limiting_s
    ngx_http_sluice_rate_limiting_t;


/* Whose requests are counted together; NGX_DECLINED: it has no such thing. */

typedef ngx_int_t (*ngx_http_sluice_rate_identify_pt)(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier);


/* Requests in a window.  Of 1.5 two may pass: the first leaves a remainder. */

typedef struct {
    double      number;
    ngx_str_t   text;
} ngx_http_sluice_rate_t;


struct ngx_http_sluice_rate_limiting_s {
    ngx_http_sluice_rate_identify_pt  identify;
    sluice_core_rule_t                rule;
    ngx_http_sluice_rate_t            rates[SLUICE_CORE_PERIODS];
                                             /* of the rule's windows */
    ngx_str_t                         id;
    ngx_str_t                         header;      /* "http_x_tenant" */
    ngx_uint_t                        header_hash;
    ngx_str_t                         path;
    ngx_str_t                         message;     /* data NULL: Kong's */
    ngx_uint_t                        status;

    unsigned                          fault_tolerant:1;
    unsigned                          hide_headers:1;
};


/* ngx_http_sluice_rate_limiting.c */

extern ngx_http_sluice_plugin_t  ngx_http_sluice_rate_limiting;

/* ngx_http_sluice_rate_limiting_headers.c */

/* Before any is set, as often as one likes. */
void ngx_http_sluice_rate_headers_init(void);

/* As Lua writes it, without a NUL; returns its end. */
u_char *ngx_http_sluice_rate_print(u_char *p, double number);

/* now: seconds since 1970.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_rate_headers_set(ngx_http_request_t *r,
    ngx_http_sluice_rate_limiting_t *conf, const sluice_core_taken_t *taken,
    uint64_t now, ngx_uint_t is_refused);

/* ngx_http_sluice_rate_rules.c */

/* One rule more, until the pool goes.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_sluice_rate_rules_add(ngx_pool_t *pool, uint32_t slot);

/* Lines that each rule may have for itself. */
uint32_t ngx_http_sluice_rate_share(void);


#endif /* NGX_HTTP_SLUICE_RATE_LIMITING_H_INCLUDED */
