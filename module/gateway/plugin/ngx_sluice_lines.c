
/*
 * Gathers log entries (ngx_sluice_lines.h).
 */


#include "ngx_sluice_handover.h"
#include "ngx_sluice_lines.h"


#define NGX_SLUICE_LINES_OPEN   16             /* targets at a time */
#define NGX_SLUICE_LINES_LEAST  4096           /* bytes of some lines */
#define NGX_SLUICE_LINES_FULL   (64 * 1024)
#define NGX_SLUICE_LINES_KEY    2048           /* of plugin and target */


static ngx_http_sluice_plugin_t *ngx_sluice_lines_plugin(const u_char *name,
    size_t length);
static ngx_sluice_lines_t *ngx_sluice_lines_room(
    ngx_http_sluice_plugin_t *plugin, const u_char *target, size_t length,
    size_t room);
static ngx_sluice_lines_t **ngx_sluice_lines_find(
    ngx_http_sluice_plugin_t *plugin, const u_char *target, size_t length);
static void ngx_sluice_lines_hand_on(ngx_sluice_lines_t **slot);


static ngx_sluice_lines_t  *ngx_sluice_lines_open[NGX_SLUICE_LINES_OPEN];
static ngx_uint_t           ngx_sluice_lines_turn;


void
ngx_sluice_lines_add(const sluice_spool_t *spool,
    const sluice_spool_found_t *found)
{
    u_char                    *p, key[NGX_SLUICE_LINES_KEY];
    uint64_t                   name, target, text;
    ngx_sluice_lines_t        *lines;
    ngx_http_sluice_plugin_t  *plugin;

    name = found->length[SLUICE_SPOOL_PLUGIN];
    target = found->length[SLUICE_SPOOL_TARGET];
    text = found->length[SLUICE_SPOOL_TEXT];

    /* the spool is not believed */

    plugin = NULL;
    lines = NULL;

    if (name + target <= sizeof(key)) {
        sluice_spool_copy(spool, found, 0, name + target, key);
        plugin = ngx_sluice_lines_plugin(key, name);
    }

    if (plugin) {
        lines = ngx_sluice_lines_room(plugin, key + name, target,
                                      text + sizeof(",\n") - 1);
    }

    if (lines == NULL) {
        sluice_spool_lose(spool, 1);
        return;
    }

    /* one without text only says that there will be others */

    if (text) {
        p = ngx_sluice_lines_text(lines) + lines->length;
        sluice_spool_copy(spool, found, name + target, text, p);
        p += text;

        if (plugin->deliver == NULL) {
            *p++ = ',';
        }

        *p++ = LF;

        lines->length = p - ngx_sluice_lines_text(lines);
        lines->count++;
    }
}


/* a few names, of which one is logged to mostly */

static ngx_http_sluice_plugin_t *
ngx_sluice_lines_plugin(const u_char *name, size_t length)
{
    ngx_uint_t  i;

    for (i = 0; ngx_http_sluice_plugins[i]; i++) {

        if (ngx_http_sluice_plugins[i]->logs
            && ngx_http_sluice_plugins[i]->name.len == length
            && ngx_memcmp(ngx_http_sluice_plugins[i]->name.data, name, length)
               == 0)
        {
            return ngx_http_sluice_plugins[i];
        }
    }

    return NULL;
}


/* Lines of a target with room for so many bytes more; NULL: no memory. */

static ngx_sluice_lines_t *
ngx_sluice_lines_room(ngx_http_sluice_plugin_t *plugin, const u_char *target,
    size_t length, size_t room)
{
    size_t               size, used;
    ngx_sluice_lines_t  *lines, **slot;

    slot = ngx_sluice_lines_find(plugin, target, length);
    lines = *slot;

    if (lines && lines->length + room > NGX_SLUICE_LINES_FULL) {
        ngx_sluice_lines_hand_on(slot);
        lines = NULL;
    }

    used = sizeof(ngx_sluice_lines_t) + length + (lines ? lines->length : 0);

    if (lines && used + room <= lines->size) {
        return lines;
    }

    size = NGX_SLUICE_LINES_LEAST;

    if (lines) {
        size = ngx_min(4 * lines->size, used - lines->length
                                        + NGX_SLUICE_LINES_FULL);
    }

    size = ngx_max(size, used + room);

    lines = realloc(*slot, size);
    if (lines == NULL) {
        return NULL;
    }

    if (*slot == NULL) {
        lines->next = NULL;
        lines->plugin = plugin;
        lines->count = 0;
        lines->target = length;
        lines->length = 0;
        ngx_memcpy(lines->data, target, length);
    }

    lines->size = size;
    *slot = lines;

    return lines;
}


/* Where a target's are; NULL is there if it has none. */

static ngx_sluice_lines_t **
ngx_sluice_lines_find(ngx_http_sluice_plugin_t *plugin, const u_char *target,
    size_t length)
{
    ngx_uint_t           i;
    ngx_sluice_lines_t  *lines, **slot;

    for (i = 0; i < NGX_SLUICE_LINES_OPEN; i++) {
        lines = ngx_sluice_lines_open[i];

        if (lines
            && lines->plugin == plugin
            && lines->target == length
            && ngx_memcmp(lines->data, target, length) == 0)
        {
            return &ngx_sluice_lines_open[i];
        }
    }

    slot = &ngx_sluice_lines_open[ngx_sluice_lines_turn++
                                  % NGX_SLUICE_LINES_OPEN];

    ngx_sluice_lines_hand_on(slot);

    return slot;
}


void
ngx_sluice_lines_flush(void)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_SLUICE_LINES_OPEN; i++) {
        ngx_sluice_lines_hand_on(&ngx_sluice_lines_open[i]);
    }

    ngx_sluice_lines_turn = 0;
}


static void
ngx_sluice_lines_hand_on(ngx_sluice_lines_t **slot)
{
    ngx_sluice_lines_t  *lines;

    lines = *slot;
    *slot = NULL;

    if (lines == NULL) {
        return;
    }

    if (lines->plugin->deliver == NULL) {
        ngx_sluice_handover_put(lines);

    } else if (lines->count) {
        lines->plugin->deliver(lines);

    } else {
        free(lines);
    }
}
