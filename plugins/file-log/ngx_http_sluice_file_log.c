
/*
 * The file-log plugin: entries of requests go into a file.  Workers put them
 * into the spool; the control worker writes (ngx_sluice_file_log.h).
 */


#include "ngx_http_sluice_decide.h"
#include "ngx_sluice_file_log.h"
#include "sluice_file_log.h"


static void *ngx_http_sluice_file_log_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words);


ngx_http_sluice_plugin_t  ngx_http_sluice_plugin_file_log = {
    .name = ngx_string("file-log"),
    .decision = &sluice_file_log,
    .compile = ngx_http_sluice_file_log_compile,
    .logs = 1,
    .deliver = ngx_sluice_file_log_deliver,
    .settled = ngx_sluice_file_log_settled
};


static void *
ngx_http_sluice_file_log_compile(ngx_pool_t *pool,
    const ngx_http_sluice_binding_t *binding, ngx_str_t *words)
{
    ngx_str_t          *target;
    sluice_file_log_t  *conf;

    conf = ngx_http_sluice_decide_compile(&sluice_file_log,
                                          sizeof(sluice_file_log_t), pool,
                                          binding, words);
    if (conf == NULL) {
        return NULL;
    }

    target = ngx_palloc(pool, sizeof(ngx_str_t));
    if (target == NULL) {
        return NULL;
    }

    target->len = 1 + conf->path.length;
    target->data = ngx_pnalloc(pool, target->len);
    if (target->data == NULL) {
        return NULL;
    }

    target->data[0] = conf->reopen ? NGX_SLUICE_FILE_LOG_REOPEN : 0;
    ngx_memcpy(target->data + 1, conf->path.data, conf->path.length);

    return target;
}
