
/*
 * The regular expressions of routes and plugins that this worker has compiled
 * (ngx_http_sluice_patterns.c).
 */


#ifndef NGX_HTTP_SLUICE_PATTERNS_H_INCLUDED
#define NGX_HTTP_SLUICE_PATTERNS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "core.h"


/* NULL: no memory. */
sluice_core_regexes_t *ngx_http_sluice_patterns(void);

void ngx_http_sluice_patterns_exit_process(void);


#endif /* NGX_HTTP_SLUICE_PATTERNS_H_INCLUDED */
