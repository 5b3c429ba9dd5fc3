
/*
 * Entries of log plugins on their way from the thread that reads the spool
 * (ngx_sluice_reader.h) to the control worker's Lua: those of plugins that
 * have no deliver() in C.  gateway/plugin/delivery.lua takes them.
 *
 * The thread never waits: there may be as many bytes as the spool has; what
 * comes beyond is dropped, the newest, and counted.
 */


#ifndef NGX_SLUICE_HANDOVER_H_INCLUDED
#define NGX_SLUICE_HANDOVER_H_INCLUDED


#include "ngx_sluice_lines.h"


/* The target of such a plugin: the configuration that the request had. */

typedef struct {
    uint64_t                      revision;
    uint32_t                      slot;
    uint32_t                      generation;
} ngx_sluice_handover_target_t;


/* In the control worker, before the thread begins.  NGX_ERROR: it cannot. */
ngx_int_t ngx_sluice_handover_init(void);
void ngx_sluice_handover_exit_process(void);

/* The thread's: takes lines, or drops them; there will be none any more. */
void ngx_sluice_handover_put(ngx_sluice_lines_t *lines);
void ngx_sluice_handover_end(void);

/* The event loop's: Lua shall look, since the worker leaves. */
void ngx_sluice_handover_wake(void);


/* FFI */

/*
 * What sluice_handover_next() has found; the texts are good until it is called
 * once more.  No lines: a worker begins to use the configuration.
 */

typedef struct {
    sluice_core_text_t  plugin;
    sluice_core_text_t  lines;
    uint64_t            revision;
    uint32_t            slot;
    uint32_t            generation;
    uint32_t            count;             /* of lines */
} sluice_handover_t;

void sluice_handover_start(void *semaphore, int (*post)(void *, int));
int sluice_handover_next(sluice_handover_t *found);

/* FFI end */


#endif /* NGX_SLUICE_HANDOVER_H_INCLUDED */
