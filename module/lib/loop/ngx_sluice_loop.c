
/*
 * Files and events in nginx's loop (ngx_sluice_loop.h).
 */


#include "ngx_sluice_loop.h"


ngx_connection_t *
ngx_sluice_loop_listen(int fd, ngx_event_handler_pt handler, void *data)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(fd, ngx_cycle->log);
    if (c == NULL) {
        return NULL;
    }

    c->data = data;
    c->read->handler = handler;
    c->read->log = ngx_cycle->log;
    c->write->log = ngx_cycle->log;

    if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
        ngx_sluice_loop_unlisten(c);
        return NULL;
    }

    return c;
}


void
ngx_sluice_loop_unlisten(ngx_connection_t *c)
{
    if (c->read->active) {
        (void) ngx_del_event(c->read, NGX_READ_EVENT, 0);
    }

    ngx_sluice_loop_cancel(c->read);
    ngx_free_connection(c);
    c->fd = (ngx_socket_t) -1;
}


/* epoll reports each write as an edge; it takes 2^64 of them to fill a sum */

void
ngx_sluice_loop_take(ngx_event_t *rev, const char *file, const char *what)
{
    uint64_t           n;
    ngx_connection_t  *c = rev->data;

    if (ngx_event_flags & NGX_USE_CLEAR_EVENT) {
        return;
    }

    if (read(c->fd, &n, sizeof(n)) == -1 && ngx_errno != NGX_EAGAIN) {
        ngx_log_error(NGX_LOG_ALERT, rev->log, ngx_errno,
                      "sluice: read() from %s failed", file);
    }

    if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        ngx_log_error(NGX_LOG_ALERT, rev->log, 0,
                      "sluice: no %s any more", what);
    }
}


void
ngx_sluice_loop_prepare(ngx_event_t *e, ngx_event_handler_pt handler,
    void *data)
{
    e->handler = handler;
    e->data = data;
    e->log = ngx_cycle->log;
}


void
ngx_sluice_loop_cancel(ngx_event_t *e)
{
    if (e->timer_set) {
        ngx_del_timer(e);
    }

    if (e->posted) {
        ngx_delete_posted_event(e);
    }
}
