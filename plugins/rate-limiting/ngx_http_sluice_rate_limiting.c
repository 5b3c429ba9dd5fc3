
/*
 * The rate-limiting plugin, policy local: requests are counted in the area of
 * ngx_sluice_limits.h, all windows of a rule at once, and refused where one is
 * full.
 */


#include "ngx_http_sluice_answer.h"
#include "ngx_http_sluice_ctx.h"
#include "ngx_http_sluice_packed.h"
#include "ngx_http_sluice_rate_limiting.h"
#include "ngx_sluice_limits.h"
#include "ngx_sluice_metrics.h"


#define NGX_HTTP_SLUICE_RATE_REPORT  10      /* seconds between two */
#define NGX_HTTP_SLUICE_RATE_MOST    1e15    /* more than any count */


typedef struct {
    ngx_str_t                         name;
    ngx_http_sluice_rate_identify_pt  identify;
} ngx_http_sluice_rate_by_t;


static void *ngx_http_sluice_rate_limiting_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words);
static ngx_int_t ngx_http_sluice_rate_read(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding,
    ngx_http_sluice_rate_limiting_t *conf, uint64_t *limits,
    ngx_str_t *words);
static ngx_int_t ngx_http_sluice_rate_read_rates(ngx_pool_t *pool,
    ngx_http_sluice_packed_t *packed, ngx_http_sluice_rate_limiting_t *conf,
    uint64_t *limits);
static ngx_int_t ngx_http_sluice_rate_copy(ngx_pool_t *pool, ngx_str_t *text);
static ngx_uint_t ngx_http_sluice_rate_may_report(ngx_uint_t level);
static ngx_int_t ngx_http_sluice_rate_limiting_access(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, void *data);
static ngx_int_t ngx_http_sluice_rate_not_counted(ngx_http_request_t *r,
    ngx_http_sluice_rate_limiting_t *conf);
static ngx_int_t ngx_http_sluice_rate_by_ip(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier);
static ngx_int_t ngx_http_sluice_rate_by_consumer(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier);
static ngx_int_t ngx_http_sluice_rate_by_credential(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier);
static ngx_int_t ngx_http_sluice_rate_by_service(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier);
static ngx_int_t ngx_http_sluice_rate_by_header(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier);
static ngx_int_t ngx_http_sluice_rate_by_path(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier);


ngx_http_sluice_plugin_t  ngx_http_sluice_rate_limiting = {
    ngx_string("rate-limiting"),
    ngx_http_sluice_rate_limiting_compile,
    ngx_http_sluice_rate_limiting_access
};


static ngx_http_sluice_rate_by_t  ngx_http_sluice_rate_by[] = {
    { ngx_string("consumer"), ngx_http_sluice_rate_by_consumer },
    { ngx_string("credential"), ngx_http_sluice_rate_by_credential },
    { ngx_string("ip"), ngx_http_sluice_rate_by_ip },
    { ngx_string("service"), ngx_http_sluice_rate_by_service },
    { ngx_string("header"), ngx_http_sluice_rate_by_header },
    { ngx_string("path"), ngx_http_sluice_rate_by_path },
    { ngx_null_string, NULL }
};


static void *
ngx_http_sluice_rate_limiting_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words)
{
    uint64_t                          limits[SLUICE_CORE_PERIODS];
    ngx_http_sluice_rate_limiting_t  *conf;

    if (ngx_sluice_limits_meter() == NULL) {
        ngx_str_set(words, "sluice_limits_size is not set");
        return NULL;
    }

    conf = ngx_pcalloc(pool, sizeof(ngx_http_sluice_rate_limiting_t));

    if (conf == NULL
        || ngx_http_sluice_rate_read(pool, binding, conf, limits, words)
           != NGX_OK
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

    sluice_core_rule_set(&conf->rule, binding->slot, binding->generation,
                         limits, 0);

    ngx_http_sluice_rate_headers_init();

    return conf;
}


/* What plugins/rate-limiting/init.lua has packed. */

static ngx_int_t
ngx_http_sluice_rate_read(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding,
    ngx_http_sluice_rate_limiting_t *conf, uint64_t *limits, ngx_str_t *words)
{
    ngx_str_t                   by;
    ngx_uint_t                  i;
    ngx_http_sluice_packed_t    packed;
    ngx_http_sluice_rate_by_t  *known;

    conf->id = binding->id;

    ngx_http_sluice_packed_open(&packed, &binding->packed);

    if (ngx_http_sluice_rate_read_rates(pool, &packed, conf, limits)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_sluice_packed_text(&packed, &by);
    ngx_http_sluice_packed_text(&packed, &conf->header);
    ngx_http_sluice_packed_text(&packed, &conf->path);
    conf->status = ngx_http_sluice_packed_number(&packed);
    ngx_http_sluice_packed_text(&packed, &conf->message);
    conf->fault_tolerant = ngx_http_sluice_packed_number(&packed) != 0;
    conf->hide_headers = ngx_http_sluice_packed_number(&packed) != 0;

    for (i = 0; ngx_http_sluice_rate_by[i].identify; i++) {
        known = &ngx_http_sluice_rate_by[i];

        if (known->name.len == by.len
            && ngx_strncmp(known->name.data, by.data, by.len) == 0)
        {
            conf->identify = known->identify;
        }
    }

    if (ngx_http_sluice_packed_done(&packed) != NGX_OK
        || conf->identify == NULL
        || conf->rates[0].text.len == 0)
    {
        ngx_str_set(words, "the packed configuration is damaged");
        return NGX_ERROR;
    }

    if (ngx_http_sluice_rate_copy(pool, &conf->id) != NGX_OK
        || ngx_http_sluice_rate_copy(pool, &conf->header) != NGX_OK
        || ngx_http_sluice_rate_copy(pool, &conf->path) != NGX_OK
        || ngx_http_sluice_rate_copy(pool, &conf->message) != NGX_OK)
    {
        return NGX_ERROR;
    }

    conf->header_hash = ngx_hash_key(conf->header.data, conf->header.len);

    return NGX_OK;
}


/* Each period's, 0 where it has none, into those of the windows. */

static ngx_int_t
ngx_http_sluice_rate_read_rates(ngx_pool_t *pool,
    ngx_http_sluice_packed_t *packed, ngx_http_sluice_rate_limiting_t *conf,
    uint64_t *limits)
{
    double                   number;
    ngx_uint_t               i;
    ngx_http_sluice_rate_t  *rate;

    rate = conf->rates;

    for (i = 0; i < SLUICE_CORE_PERIODS; i++) {

        number = ngx_http_sluice_packed_double(packed);
        limits[i] = 0;

        if (number <= 0) {
            continue;
        }

        limits[i] = (uint64_t) ngx_min(number, NGX_HTTP_SLUICE_RATE_MOST);

        if ((double) limits[i] < number) {
            limits[i]++;
        }

        rate->number = number;
        rate->text.data = ngx_pnalloc(pool, NGX_HTTP_SLUICE_RATE_TEXT);

        if (rate->text.data == NULL) {
            return NGX_ERROR;
        }

        rate->text.len = ngx_http_sluice_rate_print(rate->text.data, number)
                         - rate->text.data;
        rate++;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_rate_copy(ngx_pool_t *pool, ngx_str_t *text)
{
    if (text->data) {
        text->data = ngx_pstrdup(pool, text);

        if (text->data == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
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
    ngx_http_sluice_rate_limiting_t *conf = data;

    int                  full;
    time_t               now;
    ngx_str_t            identifier;
    ngx_uint_t           is_fallback;
    sluice_core_taken_t  taken;

    now = ngx_time();
    is_fallback = conf->identify(r, ctx, conf, &identifier) != NGX_OK;

    if (is_fallback) {
        identifier = r->connection->addr_text;
    }

    conf->rule.share = ngx_http_sluice_rate_share();

    full = sluice_core_meter_take(ngx_sluice_limits_meter(), &conf->rule,
                                  identifier.data, identifier.len, is_fallback,
                                  now, &taken);

    if (full == SLUICE_CORE_FULL) {
        return ngx_http_sluice_rate_not_counted(r, conf);
    }

    if (taken.is_shared && ngx_http_sluice_rate_may_report(NGX_LOG_WARN)) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "rate-limiting: plugin %V has more identifiers than its "
                      "share of memory holds, the further ones share a "
                      "counter, raise rate_limiting_memory", &conf->id);
    }

    if (!conf->hide_headers
        && ngx_http_sluice_rate_headers_set(r, conf, &taken, now, full > 0)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (full == 0) {
        return NGX_OK;
    }

    ngx_sluice_metrics_add(SLUICE_METRICS_RATE_LIMITED, 1);

    return ngx_http_sluice_answer(r, conf->status,
                                  conf->message.data ? &conf->message : NULL);
}


static ngx_int_t
ngx_http_sluice_rate_not_counted(ngx_http_request_t *r,
    ngx_http_sluice_rate_limiting_t *conf)
{
    if (ngx_http_sluice_rate_may_report(NGX_LOG_ERR)) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "rate-limiting: a request was not counted: no memory, "
                      "raise rate_limiting_memory");
    }

    if (conf->fault_tolerant) {
        return NGX_OK;
    }

    return ngx_http_sluice_answer(r, NGX_HTTP_INTERNAL_SERVER_ERROR, NULL);
}


static ngx_int_t
ngx_http_sluice_rate_by_ip(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_rate_limiting_t *conf, ngx_str_t *identifier)
{
    *identifier = r->connection->addr_text;

    return NGX_OK;
}


/* Who has a credential, and no consumer, is somebody too. */

static ngx_int_t
ngx_http_sluice_rate_by_consumer(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier)
{
    *identifier = ctx->consumer.len ? ctx->consumer : ctx->credential;

    return identifier->len ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_rate_by_credential(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier)
{
    *identifier = ctx->credential;

    return identifier->len ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_http_sluice_rate_by_service(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier)
{
    static uint32_t  service[2];             /* of the request in hand */

    if (ctx->service == SLUICE_CORE_NOBODY) {
        return NGX_DECLINED;
    }

    service[0] = ctx->service;
    service[1] = ctx->service_generation;

    identifier->data = (u_char *) service;
    identifier->len = sizeof(service);

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_rate_by_header(ngx_http_request_t *r,
    ngx_http_sluice_ctx_t *ctx, ngx_http_sluice_rate_limiting_t *conf,
    ngx_str_t *identifier)
{
    ngx_http_variable_value_t  *value;

    value = ngx_http_get_variable(r, &conf->header, conf->header_hash);

    if (value == NULL || value->not_found) {
        return NGX_DECLINED;
    }

    identifier->data = value->data;
    identifier->len = value->len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_rate_by_path(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx,
    ngx_http_sluice_rate_limiting_t *conf, ngx_str_t *identifier)
{
    if (ctx->path.len != conf->path.len
        || ngx_strncmp(ctx->path.data, conf->path.data, conf->path.len) != 0)
    {
        return NGX_DECLINED;
    }

    *identifier = conf->path;

    return NGX_OK;
}
