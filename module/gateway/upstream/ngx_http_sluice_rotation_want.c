
/*
 * A request finds no peer, since names have no addresses yet.  It is answered
 * 503; the control worker gets an event for each of the names, and asks for
 * them at once (gateway/control/unknown_names.lua).
 */


#include "ngx_sluice.h"
#include "ngx_sluice_abi.h"
#include "ngx_http_sluice_rotation.h"


#define NGX_HTTP_SLUICE_ROTATION_WANT    1000    /* ms */
#define NGX_HTTP_SLUICE_ROTATION_SOURCE  "sluice-gateway-wanted"


void
ngx_http_sluice_rotation_want(ngx_http_sluice_rotation_t *rotation)
{
    ngx_str_t        *name;
    ngx_uint_t        i;
    sluice_events_t  *events;

    /* nil, as LuaJIT's string.buffer has it: all is in the event's name */
    static const u_char  payload[] = { 0 };

    if (rotation->was_wanted
        && ngx_current_msec - rotation->wanted < NGX_HTTP_SLUICE_ROTATION_WANT)
    {
        return;
    }

    rotation->wanted = ngx_current_msec;
    rotation->was_wanted = 1;

    events = sluice_events_open(0);                  /* that of http */

    if (events == NULL) {
        return;
    }

    for (i = 0; i < rotation->unknown_count; i++) {
        name = &rotation->unknown[i];

        /* what does not get through, the period does */

        (void) sluice_events_publish_to(events, SLUICE_RING_WORKER, 0, NULL, 0,
                                  0, 0, NGX_HTTP_SLUICE_ROTATION_SOURCE,
                                  sizeof(NGX_HTTP_SLUICE_ROTATION_SOURCE) - 1,
                                  (char *) name->data, name->len, payload,
                                  sizeof(payload));
    }
}
