
/*
 * The rate-limiting plugin, policy local, in nginx: requests are counted in
 * the area of ngx_sluice_limits.h; sluice_rate_limiting.c decides.
 */


#include "ngx_http_sluice_decide.h"
#include "ngx_http_sluice_rate_limiting.h"
#include "ngx_sluice_limits.h"
#include "ngx_sluice_metrics.h"
#include "sluice_rate_limiting.h"


#define NGX_HTTP_SLUICE_RATE_REPORT  10      /* seconds between two */


typedef struct {
    sluice_rate_limiting_t  plain;           /* the first: decide() reads it */
    ngx_str_t               id;
} ngx_http_sluice_rate_conf_t;


typedef struct {
    sluice_rate_limiting_own_t    plain;     /* the same */
    ngx_connection_t             *connection;
    ngx_http_sluice_rate_conf_t  *conf;
} ngx_http_sluice_rate_own_t;


static void *ngx_http_sluice_rate_limiting_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words);
static ngx_uint_t ngx_http_sluice_rate_may_report(ngx_uint_t level);
static ngx_int_t ngx_http_sluice_rate_limiting_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);
static int ngx_http_sluice_rate_take(const sluice_rate_limiting_own_t *plain,
    sluice_core_rule_t *rule, const sluice_core_text_t *identifier,
    int is_fallback, uint64_t now, sluice_core_taken_t *taken);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_rate_limiting = {
    .name = ngx_string("rate-limiting"),
    .compile = ngx_http_sluice_rate_limiting_compile,
    .access = ngx_http_sluice_rate_limiting_access
};


static void *
ngx_http_sluice_rate_limiting_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words)
{
    ngx_str_t                     id;
    ngx_http_sluice_rate_conf_t  *conf;

    if (ngx_sluice_limits_meter() == NULL) {
        ngx_str_set(words, "sluice_limits_size is not set");
        return NULL;
    }

    conf = ngx_http_sluice_decide_compile(&sluice_rate_limiting,
                                          sizeof(ngx_http_sluice_rate_conf_t),
                                          pool, binding, words);
    if (conf == NULL) {
        return NULL;
    }

    id = binding->id;
    conf->id.len = id.len;
    conf->id.data = ngx_pstrdup(pool, &id);

    if (conf->id.data == NULL
        || ngx_http_sluice_rate_rules_add(pool, binding->slot) != NGX_OK)
    {
        return NULL;
    }

    if (ngx_http_sluice_rate_share() == 0
        && ngx_http_sluice_rate_may_report(NGX_LOG_WARN))
    {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "rate-limiting: rate_limiting_memory has no share for "
                      "each window of all rules, raise it");
    }

    return conf;
}


/* Whether it is time to say something of this level in the log again. */

static ngx_uint_t
ngx_http_sluice_rate_may_report(ngx_uint_t level)
{
    static time_t  next[NGX_LOG_DEBUG];

    if (ngx_time() < next[level]) {
        return 0;
    }

    next[level] = ngx_time() + NGX_HTTP_SLUICE_RATE_REPORT;

    return 1;
}


static ngx_int_t
ngx_http_sluice_rate_limiting_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data)
{
    ngx_http_sluice_rate_own_t  own;

    own.plain.take = ngx_http_sluice_rate_take;
    own.connection = r->connection;
    own.conf = data;

    return ngx_http_sluice_decide(&sluice_rate_limiting, r, ctx, data, &own);
}


static int
ngx_http_sluice_rate_take(const sluice_rate_limiting_own_t *plain,
    sluice_core_rule_t *rule, const sluice_core_text_t *identifier,
    int is_fallback, uint64_t now, sluice_core_taken_t *taken)
{
    const ngx_http_sluice_rate_own_t  *own;

    int  full;

    own = (const ngx_http_sluice_rate_own_t *) plain;
    rule->share = ngx_http_sluice_rate_share();

    full = sluice_core_meter_take(ngx_sluice_limits_meter(), rule,
                                  identifier->data, identifier->length,
                                  is_fallback, now, taken);

    if (full == SLUICE_CORE_FULL) {

        if (ngx_http_sluice_rate_may_report(NGX_LOG_ERR)) {
            ngx_log_error(NGX_LOG_ERR, own->connection->log, 0,
                          "rate-limiting: a request was not counted: no "
                          "memory, raise rate_limiting_memory");
        }

        return full;
    }

    if (taken->is_shared && ngx_http_sluice_rate_may_report(NGX_LOG_WARN)) {
        ngx_log_error(NGX_LOG_WARN, own->connection->log, 0,
                      "rate-limiting: plugin %V has more identifiers than its "
                      "share of memory holds, the further ones share a "
                      "counter, raise rate_limiting_memory", &own->conf->id);
    }

    if (full > 0) {
        ngx_sluice_metrics_add(SLUICE_METRICS_RATE_LIMITED, 1);
    }

    return full;
}
