
/*
 * What is counted of routes and services as text, for the worker that is
 * scraped (ngx_sluice_metrics.h, module/core/text/exposition.h).
 *
 * A scrape of 10,000 routes is 30,000 lines of text.  Their labels change with
 * the configuration alone: they are made once and kept, so that a scrape looks
 * up no route and reads of each nothing but its counts.
 */


#include "ngx_sluice_images.h"
#include "ngx_sluice_metrics.h"
#include "uuid.h"


#define NGX_SLUICE_METRICS_POOL  (16 * 1024)
#define NGX_SLUICE_METRICS_ONCE  512        /* names a call */
#define NGX_SLUICE_METRICS_AHEAD 8          /* names, for the memory */
#define NGX_SLUICE_METRICS_UUID  36


typedef struct {
    uint32_t               slot;
    uint32_t               generation;
    sluice_core_text_t     labels;
} ngx_sluice_metrics_name_t;


/* Of the entities of a kind that may have lines, by slot. */

struct sluice_metrics_names_s {
    ngx_pool_t                 *pool;
    ngx_uint_t                  kind;
    uint32_t                    next;       /* slot to look at */
    uint32_t                    count;
    ngx_sluice_metrics_name_t  *names;      /* room for all slots */
};


static ngx_int_t ngx_sluice_metrics_name(sluice_metrics_names_t *names,
    const sluice_core_view_t *view, const sluice_core_found_t *found);
static void ngx_sluice_metrics_name_of(const sluice_core_found_t *found,
    int field, u_char *id, sluice_core_text_t *text);
static void ngx_sluice_metrics_range(const sluice_exposition_row_t *row,
    ngx_uint_t *from, ngx_uint_t *to);


/* NULL: no memory. */

sluice_metrics_names_t *
sluice_metrics_names_create(int kind)
{
    ngx_pool_t              *pool;
    sluice_metrics_names_t  *names;

    pool = ngx_create_pool(NGX_SLUICE_METRICS_POOL, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    names = ngx_pcalloc(pool, sizeof(sluice_metrics_names_t));

    if (names) {
        names->pool = pool;
        names->kind = (ngx_uint_t) kind;
        names->names = ngx_palloc(pool, sluice_metrics_limit()
                                        * sizeof(ngx_sluice_metrics_name_t));
    }

    if (names == NULL || names->names == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    return names;
}


/*
 * Reads the names of so many more slots from what the last refresh has found,
 * some hundred nanoseconds each.  NGX_AGAIN: there are more; NGX_OK: these
 * were all; NGX_ERROR: no memory.
 */

int
sluice_metrics_names_read(sluice_metrics_names_t *names, uint32_t slots)
{
    uint32_t                   end;
    sluice_core_found_t        found;
    const sluice_core_view_t  *view;

    static const int  kinds[SLUICE_METRICS_KINDS] = {
        [SLUICE_METRICS_ROUTE] = SLUICE_CORE_ROUTE,
        [SLUICE_METRICS_SERVICE] = SLUICE_CORE_SERVICE
    };

    if (ngx_sluice_images_seen(&view) != SLUICE_CORE_OK) {
        return NGX_OK;
    }

    end = ngx_min(names->next + slots, sluice_metrics_limit());

    for ( /* void */ ; names->next < end; names->next++) {
        found = sluice_core_by_slot(view, kinds[names->kind], names->next);

        if (found.record
            && ngx_sluice_metrics_name(names, view, &found) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return end < sluice_metrics_limit() ? NGX_AGAIN : NGX_OK;
}


static ngx_int_t
ngx_sluice_metrics_name(sluice_metrics_names_t *names,
    const sluice_core_view_t *view, const sluice_core_found_t *found)
{
    char                       *p;
    u_char                      ids[2][NGX_SLUICE_METRICS_UUID];
    sluice_core_text_t          route, service;
    sluice_core_found_t         owner;
    sluice_core_entity_t        head;
    ngx_sluice_metrics_name_t  *name;

    owner = *found;
    ngx_memzero(&route, sizeof(sluice_core_text_t));
    ngx_memzero(&service, sizeof(sluice_core_text_t));

    if (names->kind == SLUICE_METRICS_ROUTE) {
        ngx_sluice_metrics_name_of(found, SLUICE_CORE_ROUTE_NAME, ids[0],
                                   &route);

        owner = sluice_core_by_slot(view, SLUICE_CORE_SERVICE,
                                    sluice_core_number(found,
                                                   SLUICE_CORE_ROUTE_SERVICE));
    }

    if (owner.record) {
        ngx_sluice_metrics_name_of(&owner, SLUICE_CORE_SERVICE_NAME, ids[1],
                                   &service);
    }

    p = ngx_pnalloc(names->pool,
                    sluice_exposition_label_bound("route", route.length)
                    + sizeof(",") - 1
                    + sluice_exposition_label_bound("service",
                                                    service.length));
    if (p == NULL) {
        return NGX_ERROR;
    }

    name = &names->names[names->count++];
    name->labels.data = p;

    if (names->kind == SLUICE_METRICS_ROUTE) {
        p = sluice_exposition_label(p, "route", &route);
        *p++ = ',';
    }

    p = sluice_exposition_label(p, "service", &service);
    name->labels.length = (uint32_t) (p - name->labels.data);

    sluice_core_head(found, &head);
    name->slot = head.slot;
    name->generation = head.generation;

    return NGX_OK;
}


/* Its name, or its id where it has none. */

static void
ngx_sluice_metrics_name_of(const sluice_core_found_t *found, int field,
    u_char *id, sluice_core_text_t *text)
{
    sluice_core_entity_t  head;

    *text = sluice_core_text(found, field);

    if (text->length == 0) {
        sluice_core_head(found, &head);
        sluice_uuid_write((char *) id, head.id);

        text->data = (const char *) id;
        text->length = NGX_SLUICE_METRICS_UUID;
    }
}


void
sluice_metrics_names_destroy(sluice_metrics_names_t *names)
{
    ngx_destroy_pool(names->pool);
}


uint32_t
sluice_metrics_names_count(const sluice_metrics_names_t *names)
{
    return names->count;
}


/*
 * Writes a row's samples of each entity that somebody has counted, from the
 * next name on: of some hundred at most, and until samples may not have room.
 * Returns the bytes written; next is where to go on.
 */

size_t
sluice_metrics_write(const sluice_metrics_names_t *names,
    const sluice_exposition_row_t *row, uint32_t *next, char *out, size_t size)
{
    char                             *p;
    uint32_t                          end;
    ngx_uint_t                        from, to;
    sluice_metrics_sum_t              sum;
    const ngx_sluice_metrics_name_t  *name;

    p = out;
    end = ngx_min(*next + NGX_SLUICE_METRICS_ONCE, names->count);
    ngx_sluice_metrics_range(row, &from, &to);

    for ( /* void */ ; *next < end; (*next)++) {
        name = &names->names[*next];

        if (*next + NGX_SLUICE_METRICS_AHEAD < names->count) {
            ngx_sluice_metrics_prefetch(names->kind,
                                        name[NGX_SLUICE_METRICS_AHEAD].slot,
                                        from);
        }

        if (sluice_exposition_bound(row, name->labels.length)
            > size - (size_t) (p - out))
        {
            break;
        }

        if (ngx_sluice_metrics_entity(names->kind, name->slot,
                                      name->generation, from, to,
                                      (uint64_t *) &sum))
        {
            p = sluice_exposition_write(p, row, &name->labels,
                                        (uint64_t *) &sum);
        }
    }

    return (size_t) (p - out);
}


/* Which numbers of a line a row needs. */

static void
ngx_sluice_metrics_range(const sluice_exposition_row_t *row, ngx_uint_t *from,
    ngx_uint_t *to)
{
    uint32_t    i;
    ngx_uint_t  number;

    *from = row->samples[0].number;
    *to = *from + 1;

    for (i = 1; i < row->count; i++) {
        number = row->samples[i].number;

        *from = ngx_min(*from, number);
        *to = ngx_max(*to, number + 1);
    }
}
