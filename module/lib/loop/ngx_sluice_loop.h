
/*
 * Files and events of the libraries in nginx's event loop.
 */


#ifndef NGX_SLUICE_LOOP_H_INCLUDED
#define NGX_SLUICE_LOOP_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>


/*
 * A connection whose handler is called when the file can be read; NULL: there
 * is no connection left, or the loop takes none.  The file stays the caller's,
 * also after ngx_sluice_loop_unlisten().
 */
ngx_connection_t *ngx_sluice_loop_listen(int fd, ngx_event_handler_pt handler,
    void *data);
void ngx_sluice_loop_unlisten(ngx_connection_t *c);

/*
 * In the handler, of a file that counts (eventfd, timerfd): takes its sum,
 * where the loop reports no edges.  The words are for the log.
 */
void ngx_sluice_loop_take(ngx_event_t *rev, const char *file,
    const char *what);

/* An event to post, or to set as a timer, in this process. */
void ngx_sluice_loop_prepare(ngx_event_t *e, ngx_event_handler_pt handler,
    void *data);
void ngx_sluice_loop_cancel(ngx_event_t *e);


#endif /* NGX_SLUICE_LOOP_H_INCLUDED */
