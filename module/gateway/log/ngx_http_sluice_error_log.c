
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


static u_char *ngx_http_sluice_error_log_suffix(ngx_log_t *log,
    const u_char *line, u_char *p);
static ngx_err_t ngx_http_sluice_error_log_number(const u_char *line,
    const u_char *last);


static ngx_log_handler_pt  ngx_http_sluice_error_log_handler;  /* nginx's */

/* of the last line about a connection to an upstream */

static ngx_http_request_t  *ngx_http_sluice_error_log_request;
static ngx_err_t            ngx_http_sluice_error_log_last;

ngx_connection_handler_pt  ngx_http_sluice_error_log_begin =
                                                     ngx_http_init_connection;

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
    ngx_http_sluice_error_log_begin(c);

    /* it may have closed the connection, whose log is gone then */

    if (ngx_http_sluice_error_log_handler == NULL
        && c->fd != (ngx_socket_t) -1)
    {
        ngx_http_sluice_error_log_handler = c->log->handler;
    }
}


static u_char *
ngx_http_sluice_error_log_suffix(ngx_log_t *log, const u_char *line, u_char *p)
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

    if (ctx->request && log->action
        && ngx_strcmp(log->action, "connecting to upstream") == 0)
    {
        ngx_http_sluice_error_log_request = ctx->request;
        ngx_http_sluice_error_log_last =
                                    ngx_http_sluice_error_log_number(line, p);
    }

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


/* "connect() failed (111: Connection refused) while ..." has 111 */

static ngx_err_t
ngx_http_sluice_error_log_number(const u_char *line, const u_char *last)
{
    ngx_int_t      number;
    const u_char  *p, *end;

    for (p = line; p < last; p++) {

        if (*p != '(') {
            continue;
        }

        for (end = p + 1; end < last && *end >= '0' && *end <= '9'; end++) {
            /* void */
        }

        if (end == last || *end != ':') {
            continue;
        }

        number = ngx_atoi((u_char *) p + 1, end - p - 1);

        if (number != NGX_ERROR) {
            return (ngx_err_t) number;
        }
    }

    return 0;
}


ngx_err_t
ngx_http_sluice_error_log_connect(ngx_http_request_t *r)
{
    if (ngx_http_sluice_error_log_request != r->main) {
        return 0;
    }

    ngx_http_sluice_error_log_request = NULL;

    return ngx_http_sluice_error_log_last;
}
