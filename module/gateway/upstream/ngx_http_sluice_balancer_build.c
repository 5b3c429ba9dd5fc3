
/*
 * From what a balancer is made of to its peers and picks.
 */


#include "ngx_http_sluice_balancer.h"


#define NGX_HTTP_SLUICE_BALANCER_PICKS   10000   /* as Kong's slots */
#define NGX_HTTP_SLUICE_BALANCER_PEER    64      /* its text: an address */
#define NGX_HTTP_SLUICE_BALANCER_POOL    1024    /* bytes: that of one peer */
#define NGX_HTTP_SLUICE_BALANCER_UNKNOWN 16      /* names, to be asked for */
#define NGX_HTTP_SLUICE_BALANCER_ABOUT   256     /* bytes of a peer in all */


/* While it is built: what goes away with source's pool. */

typedef struct {
    ngx_http_sluice_balancer_t         *balancer;
    ngx_http_sluice_balancer_source_t  *source;
    ngx_array_t                         peers;
    ngx_array_t                         weights;     /* of uint32_t */
    ngx_array_t                         unknown;     /* of ngx_str_t */
    ngx_uint_t                          dropped;     /* peers too many */
} ngx_http_sluice_balancer_made_t;


static ngx_int_t ngx_http_sluice_balancer_build_peers(
    ngx_http_sluice_balancer_made_t *made);
static ngx_int_t ngx_http_sluice_balancer_build_target(
    ngx_http_sluice_balancer_made_t *made,
    ngx_http_sluice_balancer_target_t *target);
static ngx_int_t ngx_http_sluice_balancer_note_unknown(
    ngx_http_sluice_balancer_made_t *made,
    ngx_http_sluice_balancer_target_t *target);
static ngx_int_t ngx_http_sluice_balancer_host(
    ngx_http_sluice_balancer_made_t *made,
    ngx_http_sluice_balancer_target_t *target, ngx_str_t *host);
static ngx_int_t ngx_http_sluice_balancer_copy(ngx_pool_t *pool,
    ngx_str_t *text, const void *data, size_t length);
static ngx_int_t ngx_http_sluice_balancer_build_peer(
    ngx_http_sluice_balancer_made_t *made, u_char *text, size_t length,
    ngx_http_sluice_balancer_target_t *target, ngx_str_t *host);
static ngx_int_t ngx_http_sluice_balancer_join(
    ngx_http_sluice_balancer_made_t *made);
static ngx_int_t ngx_http_sluice_balancer_build_picks(
    ngx_http_sluice_balancer_made_t *made);
static void ngx_http_sluice_balancer_place(
    ngx_http_sluice_balancer_made_t *made);


sluice_balancer_position_t  *ngx_http_sluice_balancer_positions;


ngx_http_sluice_balancer_t *
ngx_http_sluice_balancer_build(ngx_http_sluice_balancer_source_t *source)
{
    ngx_pool_t                       *pool;
    ngx_http_sluice_balancer_t       *balancer;
    ngx_http_sluice_balancer_made_t   made;

    pool = ngx_create_pool(NGX_HTTP_SLUICE_BALANCER_POOL, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    balancer = ngx_pcalloc(pool, sizeof(ngx_http_sluice_balancer_t));
    if (balancer == NULL) {
        goto failed;
    }

    balancer->pool = pool;
    balancer->upstream = source->upstream.record != NULL;
    balancer->generation = source->generation;
    balancer->made_of_count = source->made_of.nelts;
    balancer->made_of = ngx_palloc(pool, balancer->made_of_count
                                         * sizeof(uint64_t));

    made.balancer = balancer;
    made.source = source;
    made.dropped = 0;

    if (balancer->made_of == NULL
        || ngx_http_sluice_balancer_copy(pool, &balancer->node.str,
                                         source->key.data, source->key.len)
           != NGX_OK
        || ngx_http_sluice_balancer_build_peers(&made) != NGX_OK
        || ngx_http_sluice_balancer_join(&made) != NGX_OK
        || ngx_http_sluice_balancer_build_picks(&made) != NGX_OK)
    {
        goto failed;
    }

    ngx_memcpy(balancer->made_of, source->made_of.elts,
               balancer->made_of_count * sizeof(uint64_t));

    ngx_http_sluice_balancer_place(&made);

    return balancer;

failed:

    ngx_destroy_pool(pool);

    return NULL;
}


static ngx_int_t
ngx_http_sluice_balancer_build_peers(ngx_http_sluice_balancer_made_t *made)
{
    ngx_uint_t                          i;
    ngx_http_sluice_balancer_t         *balancer;
    ngx_http_sluice_balancer_target_t  *targets;

    balancer = made->balancer;
    targets = made->source->targets.elts;

    if (ngx_array_init(&made->peers, made->source->pool, 8,
                       sizeof(ngx_http_sluice_peer_t))
        != NGX_OK
        || ngx_array_init(&made->weights, made->source->pool, 8,
                          sizeof(uint32_t))
           != NGX_OK
        || ngx_array_init(&made->unknown, balancer->pool, 1,
                          sizeof(ngx_str_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < made->source->targets.nelts; i++) {

        if (targets[i].weight
            && ngx_http_sluice_balancer_build_target(made, &targets[i])
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (made->dropped) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "upstream \"%V\": %ui addresses are left out, as more "
                      "than %d get no requests", &made->source->host,
                      made->dropped, SLUICE_BALANCER_TARGETS_MAX);
    }

    balancer->unknown = made->unknown.elts;
    balancer->unknown_count = made->unknown.nelts;

    balancer->count = made->peers.nelts;
    balancer->peers = ngx_palloc(balancer->pool,
                                 (balancer->count + 1)
                                 * sizeof(ngx_http_sluice_peer_t));
    if (balancer->peers == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(balancer->peers, made->peers.elts,
               balancer->count * sizeof(ngx_http_sluice_peer_t));

    return NGX_OK;
}


/* A peer for each of its addresses. */

static ngx_int_t
ngx_http_sluice_balancer_build_target(ngx_http_sluice_balancer_made_t *made,
    ngx_http_sluice_balancer_target_t *target)
{
    uint32_t            i, count;
    ngx_str_t           host;
    sluice_core_text_t  text;

    if (ngx_http_sluice_balancer_host(made, target, &host) != NGX_OK) {
        return NGX_ERROR;
    }

    if (target->name.record == NULL) {
        return ngx_http_sluice_balancer_build_peer(made, target->host.data,
                                                   target->host.len, target,
                                                   &host);
    }

    count = sluice_core_list(&target->name, SLUICE_CORE_NAME_ADDRESSES);

    if (count == 0) {
        return ngx_http_sluice_balancer_note_unknown(made, target);
    }

    for (i = 0; i < count; i++) {
        text = sluice_core_list_item(&target->name, SLUICE_CORE_NAME_ADDRESSES,
                                     i);

        if (ngx_http_sluice_balancer_build_peer(made, (u_char *) text.data,
                                                text.length, target, &host)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_balancer_note_unknown(ngx_http_sluice_balancer_made_t *made,
    ngx_http_sluice_balancer_target_t *target)
{
    ngx_str_t  *name;

    if (made->unknown.nelts == NGX_HTTP_SLUICE_BALANCER_UNKNOWN) {
        return NGX_OK;
    }

    name = ngx_array_push(&made->unknown);
    if (name == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_balancer_copy(made->balancer->pool, name,
                                         target->host.data, target->host.len);
}


/* What the upstream says, else the target, without the scheme's own port. */

static ngx_int_t
ngx_http_sluice_balancer_host(ngx_http_sluice_balancer_made_t *made,
    ngx_http_sluice_balancer_target_t *target, ngx_str_t *host)
{
    u_char              *p;
    ngx_pool_t          *pool;
    ngx_uint_t           ipv6;
    sluice_core_text_t   text;

    pool = made->balancer->pool;

    if (made->balancer->upstream) {
        text = sluice_core_text(&made->source->upstream,
                                SLUICE_CORE_UPSTREAM_HOST_HEADER);

        if (text.data) {
            return ngx_http_sluice_balancer_copy(pool, host, text.data,
                                                 text.length);
        }
    }

    p = ngx_pnalloc(pool, target->host.len + sizeof("[]:65535"));
    if (p == NULL) {
        return NGX_ERROR;
    }

    host->data = p;
    ipv6 = ngx_strlchr(target->host.data,
                       target->host.data + target->host.len, ':') != NULL;

    p = ngx_sprintf(p, ipv6 ? "[%V]" : "%V", &target->host);

    if (target->port != (made->source->https ? 443 : 80)) {
        p = ngx_sprintf(p, ":%ui", (ngx_uint_t) target->port);
    }

    host->len = (size_t) (p - host->data);

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_balancer_copy(ngx_pool_t *pool, ngx_str_t *text,
    const void *data, size_t length)
{
    text->data = ngx_pnalloc(pool, length + 1);
    if (text->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(text->data, data, length);
    text->len = length;

    return NGX_OK;
}


/* None of what is no address: of a name, say, that nobody could resolve. */

static ngx_int_t
ngx_http_sluice_balancer_build_peer(ngx_http_sluice_balancer_made_t *made,
    u_char *text, size_t length, ngx_http_sluice_balancer_target_t *target,
    ngx_str_t *host)
{
    u_char                   name[NGX_HTTP_SLUICE_BALANCER_PEER];
    uint32_t                *weight;
    ngx_int_t                rc;
    ngx_addr_t               addr;
    ngx_pool_t              *pool;
    ngx_http_sluice_peer_t  *peer;

    if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }

    if (target->port == 0) {
        return NGX_OK;
    }

    if (made->peers.nelts == SLUICE_BALANCER_TARGETS_MAX) {
        made->dropped++;
        return NGX_OK;
    }

    pool = made->balancer->pool;

    rc = ngx_parse_addr(pool, &addr, text, length);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
    }

    ngx_inet_set_port(addr.sockaddr, target->port);

    peer = ngx_array_push(&made->peers);
    weight = ngx_array_push(&made->weights);

    if (peer == NULL || weight == NULL) {
        return NGX_ERROR;
    }

    *weight = ngx_min(target->weight, SLUICE_BALANCER_WEIGHT_MAX);

    peer->sockaddr = addr.sockaddr;
    peer->socklen = addr.socklen;
    peer->same = (uint32_t) made->peers.nelts - 1;
    peer->host = *host;

    length = ngx_sock_ntop(addr.sockaddr, addr.socklen, name, sizeof(name), 1);

    return ngx_http_sluice_balancer_copy(pool, &peer->name, name, length);
}


/* Makes rings of those that have the same address. */

static ngx_int_t
ngx_http_sluice_balancer_join(ngx_http_sluice_balancer_made_t *made)
{
    uint32_t                *table, mask, i, at;
    ngx_http_sluice_peer_t  *peers, *peer;

    peers = made->balancer->peers;

    for (mask = 1; mask < 2 * made->balancer->count; mask = 2 * mask + 1) {
        /* void */
    }

    /* numbers of peers, from 1 */

    table = ngx_pcalloc(made->source->pool, (mask + 1) * sizeof(uint32_t));
    if (table == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < made->balancer->count; i++) {
        peer = &peers[i];
        at = ngx_murmur_hash2(peer->name.data, peer->name.len) & mask;

        while (table[at]
               && ngx_cmp_sockaddr(peers[table[at] - 1].sockaddr,
                                   peers[table[at] - 1].socklen,
                                   peer->sockaddr, peer->socklen, 1)
                  != NGX_OK)
        {
            at = (at + 1) & mask;
        }

        if (table[at]) {
            peer->same = peers[table[at] - 1].same;
            peers[table[at] - 1].same = i;

        } else {
            table[at] = i + 1;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_balancer_build_picks(ngx_http_sluice_balancer_made_t *made)
{
    void                        *buffer;
    uint32_t                     count, slots;
    uint64_t                     size, used;
    ngx_http_sluice_balancer_t  *balancer;

    balancer = made->balancer;
    count = (uint32_t) balancer->count;

    slots = NGX_HTTP_SLUICE_BALANCER_PICKS;

    if (balancer->upstream) {
        slots = sluice_core_number(&made->source->upstream,
                                   SLUICE_CORE_UPSTREAM_SLOTS);
        slots = ngx_max(1, ngx_min(slots, SLUICE_BALANCER_PICKS_MAX));
    }

    size = sluice_balancer_bound(count, slots);

    buffer = ngx_palloc(made->source->pool, size);
    if (buffer == NULL) {
        return NGX_ERROR;
    }

    if (sluice_balancer_build(made->weights.elts, count, slots, buffer,
                              size, &used)
        != SLUICE_CORE_OK)
    {
        return NGX_ERROR;
    }

    balancer->picks = ngx_palloc(balancer->pool, used);
    if (balancer->picks == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(balancer->picks, buffer, used);

    balancer->size = NGX_HTTP_SLUICE_BALANCER_POOL
                     + balancer->count * NGX_HTTP_SLUICE_BALANCER_ABOUT
                     + balancer->made_of_count * sizeof(uint64_t) + used;

    return NGX_OK;
}


static void
ngx_http_sluice_balancer_place(ngx_http_sluice_balancer_made_t *made)
{
    ngx_http_sluice_balancer_t  *balancer;

    balancer = made->balancer;

    if (balancer->upstream && ngx_http_sluice_balancer_positions
        && made->source->slot < NGX_HTTP_SLUICE_BALANCER_POSITIONS)
    {
        balancer->position =
                     &ngx_http_sluice_balancer_positions[made->source->slot];

    } else {

        /* workers do not all send their first requests to the same peer */

        balancer->position = &balancer->own;
        balancer->own.word = (uint64_t) (ngx_random() & 0xffff) << 16
                             | (uint16_t) balancer->generation;
    }
}
