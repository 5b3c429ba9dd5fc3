
/*
 * The files that file-log writes, in the control worker: a thread each, so
 * that a disk, a pipe or a terminal that stands still holds up nothing else.
 */


#ifndef NGX_SLUICE_FILE_LOG_H_INCLUDED
#define NGX_SLUICE_FILE_LOG_H_INCLUDED


#include "ngx_sluice_lines.h"


#define NGX_SLUICE_FILE_LOG_REOPEN  0x01       /* of a target's first byte */

#define NGX_SLUICE_FILE_LOG_WHY     256


/* The target's first byte are flags, the rest is the path. */
void ngx_sluice_file_log_deliver(ngx_sluice_lines_t *lines);

/* Whether all entries are written. */
ngx_uint_t ngx_sluice_file_log_settled(void);


/* ngx_sluice_file_log_open.c */

/*
 * Opens a file for appending.  -1: why (of _WHY bytes) says why not.  0, 1 and
 * 2 are not to be closed.
 */
int ngx_sluice_file_log_open(const char *path, u_char *why);

/* Ended by a zero. */
void ngx_sluice_file_log_error(u_char *why, const char *call, ngx_err_t err);


#endif /* NGX_SLUICE_FILE_LOG_H_INCLUDED */
