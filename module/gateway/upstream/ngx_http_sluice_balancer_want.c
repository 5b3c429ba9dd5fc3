
/*
 * A request finds no peer, since names have no addresses yet.  It is answered
 * 503; the control worker gets an event for each of the names, and asks for
 * them at once (gateway/upstream/unresolved.lua).
 */


#include "ngx_sluice_events.h"
#include "ngx_http_sluice_balancer.h"


#define NGX_HTTP_SLUICE_BALANCER_WANT    1000    /* ms */
#define NGX_HTTP_SLUICE_BALANCER_SOURCE  "sluice-gateway-wanted"


void
ngx_http_sluice_balancer_want(ngx_http_sluice_balancer_t *balancer)
{
    ngx_str_t        *name;
    ngx_uint_t        i;
    sluice_events_t  *events;

    /* nil, as LuaJIT's string.buffer has it: all is in the event's name */
    static const u_char  payload[] = { 0 };

    static const sluice_events_receiver_t  control = {
        NULL, 0, 0, 0, SLUICE_RING_WORKER, 0
    };

    if (balancer->was_wanted
        && ngx_current_msec - balancer->wanted < NGX_HTTP_SLUICE_BALANCER_WANT)
    {
        return;
    }

    balancer->wanted = ngx_current_msec;
    balancer->was_wanted = 1;

    events = sluice_events_open(0);                  /* that of http */

    if (events == NULL) {
        return;
    }

    for (i = 0; i < balancer->unknown_count; i++) {
        name = &balancer->unknown[i];

        /* what does not get through, the period does */

        (void) sluice_events_publish_to(events, &control,
                                  NGX_HTTP_SLUICE_BALANCER_SOURCE,
                                  sizeof(NGX_HTTP_SLUICE_BALANCER_SOURCE) - 1,
                                  (char *) name->data, name->len, payload,
                                  sizeof(payload));
    }
}
