
/*
 * What this worker keeps of compiled regular expressions: one cache for those
 * of routes and of plugins, since they are counted together and have one turn.
 */


#include "ngx_http_sluice_patterns.h"


static sluice_core_regexes_t  *ngx_http_sluice_patterns_kept;


sluice_core_regexes_t *
ngx_http_sluice_patterns(void)
{
    if (ngx_http_sluice_patterns_kept == NULL) {
        ngx_http_sluice_patterns_kept =
                     sluice_core_regexes_create(2 * SLUICE_CORE_REGEXES_BYTES);

        if (ngx_http_sluice_patterns_kept) {
            sluice_core_regexes_bound(ngx_http_sluice_patterns_kept,
                                      &ngx_current_msec);
        }
    }

    return ngx_http_sluice_patterns_kept;
}


void
ngx_http_sluice_patterns_exit_process(void)
{
    if (ngx_http_sluice_patterns_kept) {
        sluice_core_regexes_destroy(ngx_http_sluice_patterns_kept);
        ngx_http_sluice_patterns_kept = NULL;
    }
}
