
/*
 * What a balancer is made of: the upstream and its targets, or the host, and
 * the names among them, each with its slot and revision.
 */


#include "ngx_sluice_images.h"
#include "ngx_http_sluice_balancer.h"


#define NGX_HTTP_SLUICE_BALANCER_WEIGHT  100   /* of a host */


static ngx_int_t ngx_http_sluice_balancer_note(
    ngx_http_sluice_balancer_source_t *source, sluice_core_found_t *found);
static ngx_int_t ngx_http_sluice_balancer_note_name(
    ngx_http_sluice_balancer_source_t *source,
    ngx_http_sluice_balancer_target_t *target);
static ngx_int_t ngx_http_sluice_balancer_note_number(
    ngx_http_sluice_balancer_source_t *source, uint64_t number);
static ngx_int_t ngx_http_sluice_balancer_read_upstream(
    ngx_http_sluice_balancer_source_t *source);
static ngx_int_t ngx_http_sluice_balancer_read_target(
    ngx_http_sluice_balancer_source_t *source, sluice_core_found_t *found);
static ngx_int_t ngx_http_sluice_balancer_read_host(
    ngx_http_sluice_balancer_source_t *source);
static ngx_http_sluice_balancer_target_t *ngx_http_sluice_balancer_push(
    ngx_http_sluice_balancer_source_t *source, u_char *host, size_t length);


ngx_int_t
ngx_http_sluice_balancer_read(ngx_http_sluice_balancer_source_t *source)
{
    u_char                  *p;
    sluice_core_entity_t     head;
    sluice_core_identity_t   identity;

    if (ngx_array_init(&source->made_of, source->pool, 16, sizeof(uint64_t))
        != NGX_OK
        || ngx_array_init(&source->targets, source->pool, 8,
                          sizeof(ngx_http_sluice_balancer_target_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* slots and revisions of another store mean nothing */

    sluice_core_identity(&sluice_images_view()->base, &identity);

    ngx_memcpy(ngx_array_push_n(&source->made_of, 2), identity.store,
               sizeof(identity.store));

    source->upstream = sluice_core_by_key(sluice_images_view(),
                                          SLUICE_CORE_UPSTREAM,
                                          source->host.data,
                                          (uint32_t) source->host.len);

    p = ngx_pnalloc(source->pool, sizeof("https ") + NGX_INT32_LEN + 1
                                  + source->host.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    source->key.data = p;

    if (source->upstream.record == NULL) {
        p = ngx_sprintf(p, "%s %ui %V", source->https ? "https" : "http",
                        (ngx_uint_t) source->port, &source->host);
        source->key.len = (size_t) (p - source->key.data);

        return ngx_http_sluice_balancer_read_host(source);
    }

    sluice_core_head(&source->upstream, &head);
    source->slot = head.slot;
    source->generation = head.generation;

    p = ngx_sprintf(p, "%s %uD", source->https ? "https" : "http",
                    source->slot);
    source->key.len = (size_t) (p - source->key.data);

    return ngx_http_sluice_balancer_read_upstream(source);
}


static ngx_int_t
ngx_http_sluice_balancer_note(ngx_http_sluice_balancer_source_t *source,
    sluice_core_found_t *found)
{
    sluice_core_entity_t  head;

    if (found->record == NULL) {
        return ngx_http_sluice_balancer_note_number(source,
                                                    SLUICE_CORE_NOBODY);
    }

    sluice_core_head(found, &head);

    if (ngx_http_sluice_balancer_note_number(source, head.slot) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_sluice_balancer_note_number(source, head.revision);
}


static ngx_int_t
ngx_http_sluice_balancer_note_name(ngx_http_sluice_balancer_source_t *source,
    ngx_http_sluice_balancer_target_t *target)
{
    target->name = sluice_core_by_key(sluice_images_view(), SLUICE_CORE_NAME,
                                      target->host.data,
                                      (uint32_t) target->host.len);

    return ngx_http_sluice_balancer_note(source, &target->name);
}


static ngx_int_t
ngx_http_sluice_balancer_note_number(ngx_http_sluice_balancer_source_t *source,
    uint64_t number)
{
    uint64_t  *place;

    place = ngx_array_push(&source->made_of);
    if (place == NULL) {
        return NGX_ERROR;
    }

    *place = number;

    return NGX_OK;
}


static ngx_int_t
ngx_http_sluice_balancer_read_upstream(
    ngx_http_sluice_balancer_source_t *source)
{
    uint32_t                   i, count;
    const uint32_t            *slots;
    sluice_core_found_t        found;
    const sluice_core_view_t  *view;

    if (ngx_http_sluice_balancer_note(source, &source->upstream) != NGX_OK) {
        return NGX_ERROR;
    }

    view = sluice_images_view();
    count = sluice_core_children(view, SLUICE_CORE_TARGET,
                                 SLUICE_CORE_UPSTREAM, source->slot, &slots);

    for (i = 0; i < count; i++) {
        found = sluice_core_by_slot(view, SLUICE_CORE_TARGET, slots[i]);

        if (found.record
            && ngx_http_sluice_balancer_read_target(source, &found) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* "host:port", IPv6 in brackets: gateway/entities/targets.lua writes it so. */

static ngx_int_t
ngx_http_sluice_balancer_read_target(ngx_http_sluice_balancer_source_t *source,
    sluice_core_found_t *found)
{
    u_char                             *text, *colon;
    sluice_core_text_t                  value;
    ngx_http_sluice_balancer_target_t  *target;

    if (ngx_http_sluice_balancer_note(source, found) != NGX_OK) {
        return NGX_ERROR;
    }

    value = sluice_core_text(found, SLUICE_CORE_TARGET_TARGET);
    text = (u_char *) value.data;
    colon = value.length ? memrchr(text, ':', value.length) : NULL;

    if (colon == NULL) {
        return NGX_OK;
    }

    target = ngx_http_sluice_balancer_push(source, text,
                                           (size_t) (colon - text));
    if (target == NULL) {
        return NGX_ERROR;
    }

    target->port = (in_port_t) ngx_atoi(colon + 1, (size_t)
                                        (text + value.length - colon - 1));
    target->weight = sluice_core_number(found, SLUICE_CORE_TARGET_WEIGHT);

    return ngx_http_sluice_balancer_note_name(source, target);
}


static ngx_int_t
ngx_http_sluice_balancer_read_host(ngx_http_sluice_balancer_source_t *source)
{
    ngx_http_sluice_balancer_target_t  *target;

    target = ngx_http_sluice_balancer_push(source, source->host.data,
                                           source->host.len);
    if (target == NULL) {
        return NGX_ERROR;
    }

    target->port = source->port;
    target->weight = NGX_HTTP_SLUICE_BALANCER_WEIGHT;

    return ngx_http_sluice_balancer_note_name(source, target);
}


ngx_int_t
ngx_http_sluice_balancer_read_addresses(
    ngx_http_sluice_balancer_source_t *source, const ngx_array_t *addresses)
{
    ngx_str_t                          *address;
    ngx_uint_t                          i;
    ngx_http_sluice_balancer_target_t  *target;

    ngx_str_set(&source->key, "");

    if (ngx_array_init(&source->made_of, source->pool, 1, sizeof(uint64_t))
        != NGX_OK
        || ngx_array_init(&source->targets, source->pool,
                          ngx_max(addresses->nelts, 1),
                          sizeof(ngx_http_sluice_balancer_target_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    address = addresses->elts;

    for (i = 0; i < addresses->nelts; i++) {
        target = ngx_http_sluice_balancer_push(source, address[i].data,
                                               address[i].len);
        if (target == NULL) {
            return NGX_ERROR;
        }

        target->port = source->port;
        target->weight = NGX_HTTP_SLUICE_BALANCER_WEIGHT;
    }

    return NGX_OK;
}


/* The host with or without brackets. */

static ngx_http_sluice_balancer_target_t *
ngx_http_sluice_balancer_push(ngx_http_sluice_balancer_source_t *source,
    u_char *host, size_t length)
{
    ngx_http_sluice_balancer_target_t  *target;

    target = ngx_array_push(&source->targets);
    if (target == NULL) {
        return NULL;
    }

    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }

    target->host.data = host;
    target->host.len = length;
    target->name.record = NULL;

    return target;
}
