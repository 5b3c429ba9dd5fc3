
/*
 * Whether somebody still waits for an answer, and has asked for a body.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <poll.h>

#include "ngx_http_sluice_ctx.h"


/* The method is what plugins have made of it; the line is the client's. */

ngx_uint_t
ngx_http_sluice_client_heads(ngx_http_request_t *r)
{
    return r->request_line.len > sizeof("HEAD ") - 1
           && ngx_strncmp(r->request_line.data, "HEAD ", sizeof("HEAD ") - 1)
              == 0;
}


/*
 * 1: the client has closed its end of the connection, or the connection is
 * broken.  The kernel is asked: nginx does not notice an end that comes with
 * the last bytes of a body, nor one behind bytes that it has not read.
 */

int
sluice_client_is_gone(ngx_http_request_t *r)
{
    struct pollfd  of;

    of.fd = r->connection->fd;
    of.events = POLLRDHUP;
    of.revents = 0;

    return poll(&of, 1, 0) > 0;
}
