
/*
 * Listeners of this worker (ngx_sluice_listen.c).
 */


#ifndef NGX_SLUICE_LISTEN_H_INCLUDED
#define NGX_SLUICE_LISTEN_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * Takes the connection of a listener, which has one, out of the event loop,
 * and from the listener.  NGX_ERROR: the loop does not let it go.
 */
ngx_int_t ngx_sluice_listen_stop(ngx_listening_t *ls, ngx_connection_t **c);


/* FFI */

int sluice_listen_count(const char *address, size_t length);
int sluice_listen_disable(const char *address, size_t length);
int sluice_listen_credentials(uint64_t number, int32_t *pid, uint32_t *uid);

/* FFI end */


#endif /* NGX_SLUICE_LISTEN_H_INCLUDED */
