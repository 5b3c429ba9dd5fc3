
/*
 * A grace for idle client connections when a worker leaves.
 *
 * At a reload nginx closes every idle keep-alive connection at once, also one
 * on which the client is just sending its next request; that request is lost.
 * nginx has no hook there, but ngx_close_idle_connections() calls the handler
 * of each idle connection in the order of the connection array, and the
 * worker's eventfd is one of them: it was opened when the worker started, so
 * it comes before every client.  From there the idle flag of the clients'
 * connections is taken away, and the loop behind passes them by.
 *
 * A request that comes within the grace is served; nginx itself answers it
 * with "Connection: close", since the worker is exiting.  What stays idle is
 * closed by its keep-alive timer, which is made as short as the grace.
 *
 * A connection whose client was verified by revocation lists that are not the
 * live ones any more has no grace (ngx_http_sluice_crl.h).
 *
 * An HTTP/2 connection without streams says GOAWAY when that timer fires, or
 * after what comes before (ngx_http_sluice_http2_meter.c); one with streams
 * has no such timer and is left to nginx.
 */


#include "ngx_http_sluice_crl.h"
#include "ngx_sluice_process.h"


static ngx_uint_t ngx_sluice_grace_spares(ngx_connection_t *c);


void
ngx_sluice_grace_begin(ngx_cycle_t *cycle)
{
    ngx_uint_t          i;
    ngx_msec_t          grace;
    ngx_connection_t   *c;
    ngx_sluice_process_conf_t  *conf;

    conf = ngx_sluice_process_conf(cycle);

    grace = conf->idle_grace;

    if (grace == 0) {
        return;
    }

    c = cycle->connections;

    for (i = 0; i < cycle->connection_n; i++) {

        if (!ngx_sluice_grace_spares(&c[i])) {
            continue;
        }

        c[i].idle = 0;

        if (c[i].read->timer.key - ngx_current_msec > grace) {

            /* set anew: ngx_add_timer() moves none by less than 300 ms */

            ngx_del_timer(c[i].read);
            ngx_add_timer(c[i].read, grace);
        }
    }
}


static ngx_uint_t
ngx_sluice_grace_spares(ngx_connection_t *c)
{
    if (c->fd == (ngx_socket_t) -1 || !c->idle || c->close) {
        return 0;
    }

    /* without a listening: to an upstream, or our own eventfd */

    return c->listening != NULL
           && c->type == SOCK_STREAM
           && c->read->timer_set
           && !ngx_http_sluice_crl_ends(c);
}
