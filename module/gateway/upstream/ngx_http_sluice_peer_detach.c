
/*
 * What a request has of its peers when it asks for no other
 * (ngx_http_sluice_peer.h): logs name them, and its connection is kept under
 * its peer's address.
 */


#include "ngx_http_sluice_peer.h"
#include "ngx_http_sluice_peer_try.h"


static ngx_int_t ngx_http_sluice_peer_detach_address(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_peer_detach_states(ngx_http_request_t *r);
static ngx_int_t ngx_http_sluice_peer_detach_name(ngx_pool_t *pool,
    ngx_str_t **name);
static ngx_int_t ngx_http_sluice_peer_detach_host(ngx_http_request_t *r);


ngx_int_t
ngx_http_sluice_peer_detach(ngx_http_request_t *r)
{
    if (ngx_http_sluice_peer_detach_address(r) != NGX_OK
        || ngx_http_sluice_peer_detach_name(r->pool, &r->upstream->peer.name)
           != NGX_OK
        || ngx_http_sluice_peer_detach_states(r) != NGX_OK
        || ngx_http_sluice_peer_detach_host(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* nginx has none when the peer has sent all: the client may still read. */

static ngx_int_t
ngx_http_sluice_peer_detach_address(ngx_http_request_t *r)
{
    struct sockaddr        *sockaddr;
    ngx_peer_connection_t  *pc;

    pc = &r->upstream->peer;

    if (pc->sockaddr == NULL) {
        return NGX_OK;
    }

    sockaddr = ngx_palloc(r->pool, pc->socklen);
    if (sockaddr == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(sockaddr, pc->sockaddr, pc->socklen);
    pc->sockaddr = sockaddr;

    return NGX_OK;
}


/* all tries', for $upstream_addr */

static ngx_int_t
ngx_http_sluice_peer_detach_states(ngx_http_request_t *r)
{
    ngx_uint_t                  i;
    ngx_http_upstream_state_t  *state;

    state = r->upstream_states->elts;

    for (i = 0; i < r->upstream_states->nelts; i++) {

        if (state[i].peer
            && ngx_http_sluice_peer_detach_name(r->pool, &state[i].peer)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_detach_name(ngx_pool_t *pool, ngx_str_t **name)
{
    ngx_str_t  *copy;

    copy = ngx_palloc(pool, sizeof(ngx_str_t));
    if (copy == NULL) {
        return NGX_ERROR;
    }

    copy->len = (*name)->len;
    copy->data = ngx_pstrdup(pool, *name);
    if (copy->data == NULL) {
        return NGX_ERROR;
    }

    *name = copy;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_peer_detach_host(ngx_http_request_t *r)
{
    ngx_str_t                   host;
    ngx_http_variable_value_t  *v;

    v = ngx_http_sluice_peer_host(r);

    host.data = v->data;
    host.len = v->len;

    v->data = ngx_pstrdup(r->pool, &host);

    return v->data ? NGX_OK : NGX_ERROR;
}
