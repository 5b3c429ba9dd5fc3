
/*
 * The request's id in the lines of the error log
 * (ngx_http_sluice_error_log.h).
 *
 * A log leads to a request where its handler, which adds the client and the
 * request line, is nginx's own of http.  nginx does not export that function,
 * so it is read from the first connection.  A handler of ours in its place
 * would not stay there: nginx sets its own again for each request of a
 * connection that is kept alive.
 */


#include "ngx_http_sluice_error_log.h"
#include "ngx_http_sluice_log.h"
#include "ngx_sluice_error_log.h"


#define NGX_HTTP_SLUICE_ERROR_LOG_ID  32


static u_char *ngx_http_sluice_error_log_suffix(ngx_log_t *log, u_char *p);


static ngx_log_handler_pt  ngx_http_sluice_error_log_handler;  /* nginx's */

ngx_http_sluice_log_name(error_id, "sluice_request_id");


void
ngx_http_sluice_error_log_init(ngx_cycle_t *cycle)
{
    ngx_uint_t        i;
    ngx_listening_t  *ls;

    ngx_sluice_error_log_init(cycle, ngx_http_sluice_error_log_suffix);

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].handler == ngx_http_init_connection) {
            ls[i].handler = ngx_http_sluice_error_log_connection;
        }
    }
}


void
ngx_http_sluice_error_log_connection(ngx_connection_t *c)
{
    ngx_http_init_connection(c);

    /* it may have closed the connection, whose log is gone then */

    if (ngx_http_sluice_error_log_handler == NULL
        && c->fd != (ngx_socket_t) -1)
    {
        ngx_http_sluice_error_log_handler = c->log->handler;
    }
}


static u_char *
ngx_http_sluice_error_log_suffix(ngx_log_t *log, u_char *p)
{
    ngx_str_t            id;
    ngx_http_log_ctx_t  *ctx;
    static ngx_uint_t    busy;

    if (log->handler == NULL
        || log->handler != ngx_http_sluice_error_log_handler)
    {
        return p;
    }

    ctx = log->data;

    /* what makes an id may have something to log, too: no memory, say */

    if (ctx->request == NULL || busy) {
        return p;
    }

    busy = 1;
    id = ngx_http_sluice_log_variable(ctx->request,
                                      &ngx_http_sluice_log_error_id);
    busy = 0;

    if (id.len == NGX_HTTP_SLUICE_ERROR_LOG_ID) {
        p = ngx_cpymem(p, ", request_id: \"", sizeof(", request_id: \"") - 1);
        p = ngx_cpymem(p, id.data, id.len);
        *p++ = '"';
    }

    return p;
}
