
/*
 * How long a request took (ngx_http_sluice_times.h).
 */


#include "ngx_http_sluice_times.h"


void
ngx_http_sluice_times(ngx_http_request_t *r, ngx_http_sluice_times_t *times)
{
    int64_t                     total, upstream, last, gateway;
    ngx_uint_t                  i;
    ngx_time_t                 *now;
    ngx_http_upstream_state_t  *state;

    now = ngx_timeofday();
    total = (int64_t) (now->sec - r->start_sec) * 1000
            + ((int64_t) now->msec - (int64_t) r->start_msec);
    total = ngx_max(total, 0);

    times->tries = 0;
    upstream = 0;
    gateway = total;

    if (r->upstream_states && r->upstream_states->nelts && r->upstream) {

        state = r->upstream_states->elts;
        times->tries = r->upstream_states->nelts;

        for (i = 0; i < times->tries - 1; i++) {
            upstream += (int64_t) state[i].response_time;
        }

        /* from the beginning of the last try */

        last = (int64_t) (ngx_current_msec - r->upstream->start_time);
        gateway = total - upstream - last;
        gateway = ngx_max(gateway, 0);

        if (state[i].response_time != (ngx_msec_t) -1) {
            last = (int64_t) state[i].response_time;
        }

        upstream += last;
    }

    times->total = (uint32_t) total;
    times->upstream = (uint32_t) upstream;
    times->gateway = (uint32_t) gateway;
}


void
sluice_times(ngx_http_request_t *r, sluice_times_t *moments)
{
    double                      now;
    ngx_time_t                 *tp;
    ngx_http_upstream_state_t  *state;

    ngx_memzero(moments, sizeof(sluice_times_t));

    moments->started = (double) r->start_sec * 1000 + (double) r->start_msec;

    if (r->upstream_states == NULL
        || r->upstream_states->nelts == 0
        || r->upstream == NULL)
    {
        return;
    }

    tp = ngx_timeofday();
    now = (double) tp->sec * 1000 + (double) tp->msec;

    moments->asked = now
                     - (double) (ngx_current_msec - r->upstream->start_time);

    state = r->upstream_states->elts;
    state += r->upstream_states->nelts - 1;

    if (state->header_time != (ngx_msec_t) -1) {
        moments->head = moments->asked + (double) state->header_time;
    }

    if (state->response_time != (ngx_msec_t) -1) {
        moments->ended = moments->asked + (double) state->response_time;
    }
}
