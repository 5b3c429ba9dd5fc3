
/*
 * What nginx hands to the callbacks of a peer (ngx_http_sluice_peer.c): one
 * struct for a request to an upstream, with a part for each who has a say.
 */


#ifndef NGX_HTTP_SLUICE_PEER_DATA_H_INCLUDED
#define NGX_HTTP_SLUICE_PEER_DATA_H_INCLUDED


#include "ngx_http_sluice_peer_try.h"
#include "ngx_http_sluice_pool.h"
#include "ngx_http_sluice_response.h"


/* The balancer that the block has in the place of our own. */

typedef struct {
    void                            *data;
    ngx_event_get_peer_pt            get;       /* NULL: there is none */
    ngx_event_free_peer_pt           free;

    ngx_event_set_peer_session_pt    set_session;
    ngx_event_save_peer_session_pt   save_session;
} ngx_http_sluice_peer_other_t;


typedef struct {
    ngx_http_request_t              *request;
    ngx_http_sluice_peer_other_t     other;
    ngx_http_sluice_peer_try_t       try;       /* set if there is no other */
    ngx_http_sluice_pool_use_t       pool;
    ngx_http_sluice_response_t       response;
} ngx_http_sluice_peer_data_t;


/*
 * Notes why a try has failed, which its connection tells while it is there:
 * when nginx frees its peer.  state: what nginx says of it.
 */
void ngx_http_sluice_peer_error(ngx_http_request_t *r,
    ngx_peer_connection_t *pc, ngx_uint_t state);


#endif /* NGX_HTTP_SLUICE_PEER_DATA_H_INCLUDED */
