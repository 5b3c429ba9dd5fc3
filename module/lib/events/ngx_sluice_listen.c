
/*
 * What the socket transport of the events needs of nginx and Lua cannot do:
 * one worker, the broker, accepts on the transport's UNIX socket, and it asks
 * the kernel who connected.
 *
 * Plain values only, so that http and stream share the functions.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <sys/socket.h>

#include "ngx_sluice_listen.h"


static ngx_uint_t ngx_sluice_listen_matches(ngx_listening_t *ls,
    const char *address, size_t length);


/*
 * How many listeners this worker accepts on have that address, which is what
 * the directive "listen" has, as "unix:/run/sluice/events.sock".
 */

int
sluice_listen_count(const char *address, size_t length)
{
    int               found;
    ngx_uint_t        i;
    ngx_listening_t  *ls;

    found = 0;
    ls = ngx_cycle->listening.elts;

    for (i = 0; i < ngx_cycle->listening.nelts; i++) {
        found += ngx_sluice_listen_matches(&ls[i], address, length);
    }

    return found;
}


/*
 * Stops this worker from accepting on a listener; other processes, the
 * master included, keep theirs.  To be called in init_worker, when the event
 * loop has not yet accepted anything.
 *
 * Returns the number of listeners switched off, -1 for a failure.
 */

int
sluice_listen_disable(const char *address, size_t length)
{
    int                found;
    ngx_uint_t         i;
    ngx_listening_t   *ls;
    ngx_connection_t  *c;

    if (ngx_process != NGX_PROCESS_WORKER) {
        return 0;
    }

    found = 0;
    ls = ngx_cycle->listening.elts;

    for (i = 0; i < ngx_cycle->listening.nelts; i++) {

        if (!ngx_sluice_listen_matches(&ls[i], address, length)) {
            continue;
        }

        if (ngx_sluice_listen_stop(&ls[i], &c) != NGX_OK) {
            return -1;
        }

        ngx_free_connection(c);
        c->fd = (ngx_socket_t) -1;

        found++;
    }

    return found;
}


static ngx_uint_t
ngx_sluice_listen_matches(ngx_listening_t *ls, const char *address,
    size_t length)
{
    return ls->connection != NULL
           && ls->addr_text.len == length
           && ngx_strncmp(ls->addr_text.data, address, length) == 0;
}


/*
 * Takes the connection of a listener out of the event loop, and from it.
 *
 * The descriptor stays open: ngx_close_listening_sockets() closes it at exit
 * and complains of those that somebody closed before.  It skips a listener
 * without a connection, and so does ngx_enable_accept_events(), which the
 * accept mutex runs each time.
 */

ngx_int_t
ngx_sluice_listen_stop(ngx_listening_t *ls, ngx_connection_t **c)
{
    *c = ls->connection;

    if ((*c)->read->active
        && ngx_del_event((*c)->read, NGX_READ_EVENT, 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ls->connection = NULL;

    return NGX_OK;
}


/*
 * Process and user at the other end of a UNIX connection, as the kernel noted
 * them when it connected.  "number" is that of the variable $connection.
 *
 * Looks at each connection slot of the worker: once a connection, not once
 * an event.
 *
 * Returns 0, or -1 for no such connection, or one that is not a UNIX one.
 */

int
sluice_listen_credentials(uint64_t number, int32_t *pid, uint32_t *uid)
{
    socklen_t          length;
    ngx_uint_t         i;
    struct ucred       peer;
    ngx_connection_t  *c;

    c = ngx_cycle->connections;

    for (i = 0; i < ngx_cycle->connection_n; i++) {

        if (c[i].fd == (ngx_socket_t) -1 || c[i].number != number) {
            continue;
        }

        length = sizeof(peer);

        if (getsockopt(c[i].fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == -1
            || length != sizeof(peer) || peer.pid == 0)
        {
            return -1;
        }

        *pid = peer.pid;
        *uid = peer.uid;

        return 0;
    }

    return -1;
}
