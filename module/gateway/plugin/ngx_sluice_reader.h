
/*
 * The control worker reads the spool of log entries
 * (module/gateway/log/ngx_sluice_spool.h): in a thread of its own, which
 * gathers those of each target (ngx_sluice_lines.h).
 *
 * A control worker that leaves reads on until another one wants to, or until
 * no traffic worker is left; one that dies leaves what it has not read to the
 * next.
 */


#ifndef NGX_SLUICE_READER_H_INCLUDED
#define NGX_SLUICE_READER_H_INCLUDED


#include "ngx_http_sluice_plugin.h"


/*
 * In a worker that begins: the control worker starts to read, any other wakes
 * it, since the one before it may have died over a wake.  NGX_ERROR: it
 * cannot.
 */
ngx_int_t ngx_sluice_reader_init_process(ngx_cycle_t *cycle,
    ngx_uint_t is_control);

/* When the worker begins to leave. */
void ngx_sluice_reader_leave(void);

/* At its end, which takes a second at most. */
void ngx_sluice_reader_exit_process(void);


/* ngx_sluice_reader_lines.c: what its threads have to say in the error log */

ngx_int_t ngx_sluice_reader_lines_init(void);
void ngx_sluice_reader_lines_exit_process(void);

/* Of any thread: a line, which the event loop writes. */
void ngx_sluice_reader_say(ngx_uint_t level, const char *format, ...);


#endif /* NGX_SLUICE_READER_H_INCLUDED */
