
/*
 * Images in nginx: what a worker has mapped of what is live, and the memory
 * that its nginx shares for it.
 *
 *
 * THE SHARED MEMORY
 *
 * is one page of a memfd, which the master makes before it forks, keeps over
 * reloads and hands to the master that it executes at a binary upgrade
 * (directive "sluice_control on").  It holds the page of
 * module/core/image/delta.h, in which the numbers of the live files are
 * published, the block of the control worker, and the generations of keys
 * (module/core/image/generations.h).  A master with another layout of any
 * makes its own.
 *
 *
 * FILES
 *
 * base.<n> and delta.<n> in one folder; number 0 is no delta.  They belong to
 * the workers' user, mode 0600.  A number is not used again while the page
 * lives, and a file stays until another one is published.
 *
 *
 * A WORKER
 *
 * asks with each request whether something new is published: one load.  If
 * so, it maps what has changed; the old maps are unmapped later, by some MB a
 * turn of the event loop.  A worker without requests asks when an event says
 * that other files are live, so that it does not hold a large base back.
 *
 * A worker that cannot map what is published does not serve what was there
 * before, since a key in it may have been revoked: every verb returns why, the
 * request is to be answered 503.  It tries again, but not within 10 ms, and
 * each second without a request.  It touches the file that it cannot map, once
 * a second at most, so that the control worker looks at it.  One descriptor is
 * kept for it, so that full tables of connections do not matter.
 *
 * No pointer into a view survives a return to the event loop.
 *
 *
 * DAMAGE
 *
 * A worker looks at heads of files only: it checks neither what a disk nor
 * what a stranger has changed.  One that the master has started after a death
 * by a signal does, since what is live may have killed its predecessor, and
 * would kill it: it checks all of the first files that it maps.  Until they
 * pass it maps none; it accepts after two seconds and answers 503.  The block
 * counts such starts, and the control worker checks the files, too, and makes
 * new ones (gateway/writer/maintenance.lua).
 */


#ifndef NGX_SLUICE_IMAGES_H_INCLUDED
#define NGX_SLUICE_IMAGES_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>

#include "core.h"
#include "delta.h"
#include "generations.h"


/* In a heartbeat: since then it waits for something to do. */
#define SLUICE_CONTROL_RESTS  0x8000000000000000ull


/* FFI */

#define NGX_SLUICE_CONTROL_SLOTS    8
#define NGX_SLUICE_CONTROL_DEATHS   8
#define NGX_SLUICE_CONTROL_TEXT     256


/* What the control worker does; its Lua says so (control/apply.lua). */

typedef enum {
    SLUICE_CONTROL_STOPPED = 0,    /* none, or it has left */
    SLUICE_CONTROL_STARTING,
    SLUICE_CONTROL_WAITING,        /* for the role */
    SLUICE_CONTROL_BUILDING,
    SLUICE_CONTROL_LIVE,
    SLUICE_CONTROL_READ_ONLY
} sluice_control_state_e;


/*
 * Of the control worker, in shared memory.  Times are milliseconds since 1970,
 * but for those of deaths, which no change of the clock may move.  What Lua
 * writes (state, revision, error, store) only the worker that has pid writes.
 */

typedef struct {
    uint64_t  started_at;
    uint64_t  heartbeat;           /* or SLUICE_CONTROL_RESTS: it waits */
    uint64_t  revision;            /* the last that was published */
    uint64_t  failures;            /* of all workers, to map: answers of 503 */
    uint64_t  failed_at;           /* the last to map; 0: it has since; who
                                      cannot notes it each second */
    uint32_t  pid;                 /* 0: there is none */
    uint32_t  state;
    uint32_t  starts;              /* of control workers, in all */
    uint32_t  deaths;              /* that ended without a word, in all */
    uint32_t  crashes;             /* workers of any kind, by a signal */
    uint32_t  checked;             /* as many, when files were checked last */
    uint64_t  recent_deaths[NGX_SLUICE_CONTROL_DEATHS];  /* CLOCK_MONOTONIC */
    uint32_t  slots[NGX_SLUICE_CONTROL_SLOTS];  /* pids that may yet die */
    char      error[NGX_SLUICE_CONTROL_TEXT];   /* the last, or "" */
    uint8_t   store[16];           /* uuid of the store that is live; zeros:
                                      none is, or an older Sluice made it so,
                                      which had padding here */
} sluice_control_t;


/* What a request gets; good until the event loop is returned to. */

typedef struct {
    uint64_t             revision;     /* of the route */
    uint64_t             epoch;        /* as of sluice_images_epoch() */
    uint32_t             slot;
    uint32_t             generation;
    uint32_t             service;      /* slot, or SLUICE_CORE_NOBODY */
    int32_t              prefix;       /* bytes of the path; -1: no paths */
    int32_t              reason;       /* of a refusal: sluice_core_reason() */
    uint32_t             zero;
    sluice_core_found_t  route;
} sluice_images_match_t;


/* ngx_sluice_images.c */

int sluice_images_open(const char *folder, size_t length);
int sluice_images_refresh(void);
const sluice_core_view_t *sluice_images_view(void);
uint64_t sluice_images_epoch(void);
sluice_core_page_t *sluice_images_page(void);
sluice_control_t *sluice_images_control_block(void);
sluice_core_generations_t *sluice_images_generations(void);

/* ngx_sluice_images_find.c */

int sluice_images_by_slot(int kind, uint32_t slot, sluice_core_found_t *found);
uint32_t sluice_images_slots(int kind, uint32_t *slots, uint32_t max);
int sluice_images_by_id(int kind, const u_char *id,
    sluice_core_found_t *found);
int sluice_images_by_key(int kind, const u_char *key, size_t length,
    sluice_core_found_t *found);
int sluice_images_credential(const u_char *kind, size_t kind_length,
    const u_char *key, size_t length, sluice_core_found_t *found);
int sluice_images_entity(int kind, const u_char *name, size_t name_length,
    const u_char *key, size_t length, sluice_core_found_t *found);
int sluice_images_of_kind(int kind, uint32_t of, const u_char *id,
    sluice_core_found_t *found);

/* FFI end */


/* In shared memory; NULL without "sluice_control on" (ngx_sluice_page.c). */
extern sluice_core_page_t  *ngx_sluice_images_page;
extern sluice_control_t    *ngx_sluice_images_control;
extern sluice_core_generations_t  *ngx_sluice_images_generations;


/* Called when another image is mapped; NULL: nobody wants to know. */
extern void  (*ngx_sluice_images_mapped)(void);

int ngx_sluice_images_refresh(void);
ngx_uint_t ngx_sluice_images_after_end(ngx_uint_t by_signal);
int ngx_sluice_images_seen(const sluice_core_view_t **view);

/* ngx_sluice_images_failed.c */

typedef int (*ngx_sluice_refresh_pt)(void);

void ngx_sluice_images_failed(const char *path, uint64_t now,
    ngx_sluice_refresh_pt refresh);


#endif /* NGX_SLUICE_IMAGES_H_INCLUDED */
