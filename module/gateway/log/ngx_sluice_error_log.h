
/*
 * The lines of a process's error log, as they are written: without secrets
 * (ngx_sluice_redact.h), and with what a subsystem has to add.
 */


#ifndef NGX_SLUICE_ERROR_LOG_H_INCLUDED
#define NGX_SLUICE_ERROR_LOG_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


/* What stands behind a line has at most so many bytes. */

#define NGX_SLUICE_ERROR_LOG_SUFFIX  64


/* Writes at p what is to stand behind a line of log, and returns its end. */

typedef u_char *(*ngx_sluice_error_log_suffix_pt)(ngx_log_t *log,
    const u_char *line, u_char *p);


/*
 * Has this process write its lines so.  A syslog that is away has nginx say so
 * twice for each line that is lost, on behalf of the request and of nobody.
 * Of the former one a second is written; of the latter, which are all lines
 * that belong to no connection, none that is the one before letter by letter,
 * time included.
 */
void ngx_sluice_error_log_init(ngx_cycle_t *cycle,
    ngx_sluice_error_log_suffix_pt suffix);


#endif /* NGX_SLUICE_ERROR_LOG_H_INCLUDED */
