
/*
 * A service, compiled: its peers, timeouts, retries.  Compiled once an epoch
 * into a pool (ngx_http_sluice_compiled.h), and not changed any more.
 */


#ifndef NGX_HTTP_SLUICE_SERVICE_H_INCLUDED
#define NGX_HTTP_SLUICE_SERVICE_H_INCLUDED


#include "ngx_http_sluice_compiled.h"
#include "ngx_http_sluice_names.h"
#include "ngx_http_sluice_balancer.h"
#include "ngx_http_sluice_upstream_tls.h"


/*
 * Tries of a request, whatever a service wants: those that are refused at once
 * are made in one turn, in which the worker does nothing else.
 */

#define NGX_HTTP_SLUICE_TRIES  1000


struct ngx_http_sluice_service_s {
    ngx_http_sluice_balancer_t  *balancer;
    ngx_str_t                    path;       /* "/" where it has none */
    ngx_str_t                    host;       /* what balancer is of */

    /* milliseconds of a try; 0: what nginx.conf has */

    uint32_t                     connect_ms;
    uint32_t                     send_ms;
    uint32_t                     read_ms;

    uint32_t                     tries;      /* retries + 1, at most */
    uint32_t                     generation; /* of the service */
    in_port_t                    port;

    unsigned                     https:1;
    unsigned                     plugins:1;  /* it has some of its own */
    unsigned                     unusable:1; /* its certificate is: 503 */

    ngx_http_sluice_upstream_tls_t  *tls;    /* NULL: nginx.conf's */

    ngx_http_sluice_named_t      named;      /* the service */
};


/*
 * That of a service: good as long as compiled is pinned.  To be called before
 * the event loop is returned to after a match.  NULL: there is no such
 * service, or no memory.
 */
ngx_http_sluice_service_t *ngx_http_sluice_service_of(
    ngx_http_sluice_compiled_t *compiled, uint32_t slot);


#endif /* NGX_HTTP_SLUICE_SERVICE_H_INCLUDED */
