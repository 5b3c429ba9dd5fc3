
/*
 * What this worker has mapped of what is live (ngx_sluice_images.h).
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_sluice_clock.h"
#include "ngx_sluice_images.h"
#include "ngx_sluice_digest.h"

#include <sys/wait.h>
#include <time.h>


#define NGX_SLUICE_IMAGES_FOLDER   3072      /* bytes of its name */
#define NGX_SLUICE_IMAGES_NAME     (sizeof("/delta.") + NGX_INT64_LEN)
#define NGX_SLUICE_IMAGES_TRIES    10        /* files that go meanwhile */
#define NGX_SLUICE_IMAGES_RETRY    10        /* ms, after a failure */
#define NGX_SLUICE_IMAGES_SHARE    4         /* or so often what it took */
#define NGX_SLUICE_IMAGES_LATEST   1000      /* ms, at most */

/* Maps that are to go, and bytes of them that go in a turn. */
#define NGX_SLUICE_IMAGES_OLD      16
#define NGX_SLUICE_IMAGES_PIECE    (4 * 1024 * 1024)


typedef struct {
    sluice_core_view_t       view;
    sluice_core_published_t  live;           /* numbers of what is mapped */
    uint64_t                 sequence;       /* of the page, when it was */
    uint64_t                 epoch;
    uint64_t                 dependents;
    uint64_t                 again;          /* when it tries again, if rc says
                                                that it failed; monotonic */
    int                      check;          /* how much of a file */
    int                      rc;
    int                      reserve;        /* a descriptor */
    uint32_t                 uid;
    size_t                   length;
    u_char                   path[NGX_SLUICE_IMAGES_FOLDER
                                  + NGX_SLUICE_IMAGES_NAME];
} ngx_sluice_images_t;


static int ngx_sluice_images_follow(sluice_core_page_t *page);
static int ngx_sluice_images_map(const sluice_core_published_t *published);
static int ngx_sluice_images_map_files(
    const sluice_core_published_t *published);
static const char *ngx_sluice_images_path(const char *what, uint64_t number);
static void ngx_sluice_images_reserve(void);
static void ngx_sluice_images_drop(sluice_core_space_t *space);
static void ngx_sluice_images_unmap_handler(ngx_event_t *e);
static void ngx_sluice_images_note(int rc, ngx_err_t err, uint64_t began);


void  (*ngx_sluice_images_mapped)(void);

sluice_core_page_t  *ngx_sluice_images_page;
sluice_control_t    *ngx_sluice_images_control;

sluice_core_generations_t  *ngx_sluice_images_generations;

static ngx_sluice_images_t  ngx_sluice_images = {
    .rc = SLUICE_CORE_NONE,
    .reserve = -1
};

static sluice_core_space_t  ngx_sluice_images_old[NGX_SLUICE_IMAGES_OLD];
static ngx_uint_t           ngx_sluice_images_olds;

/* nginx's debug log wants a connection of each event */

static ngx_connection_t  ngx_sluice_images_none = { .fd = (ngx_socket_t) -1 };
static ngx_event_t       ngx_sluice_images_unmap;


/*
 * Says in which folder files are, in init_worker; opens nothing.
 * SLUICE_CORE_OK, or _LARGE: the name is too long.
 */

int
sluice_images_open(const char *folder, size_t length)
{
    if (length > NGX_SLUICE_IMAGES_FOLDER) {
        return SLUICE_CORE_LARGE;
    }

    ngx_memcpy(ngx_sluice_images.path, folder, length);
    ngx_sluice_images.length = length;
    ngx_sluice_images.uid = (uint32_t) geteuid();
    ngx_sluice_images.check = ngx_sluice_images_after_end(1)
                              ? SLUICE_CORE_CHECK : SLUICE_CORE_HEADER_ONLY;

    ngx_sluice_images_reserve();

    return SLUICE_CORE_OK;
}


/*
 * Whether the process whose place this one takes has ended, or by a signal.
 * The master has noted its status, and forks with it.  A worker of another
 * configuration takes a free slot, or the one behind the last.
 */

ngx_uint_t
ngx_sluice_images_after_end(ngx_uint_t by_signal)
{
    ngx_process_t  *before;

    before = &ngx_processes[ngx_process_slot];

    return ngx_process_slot < ngx_last_process && before->pid != -1
           && before->exited && (!by_signal || WIFSIGNALED(before->status));
}


/* Where is published what is live; NULL without "sluice_control on". */

sluice_core_page_t *
sluice_images_page(void)
{
    return ngx_sluice_images_page;
}


/* NULL without "sluice_control on". */

sluice_control_t *
sluice_images_control_block(void)
{
    return ngx_sluice_images_control;
}


/* NULL without "sluice_control on". */

sluice_core_generations_t *
sluice_images_generations(void)
{
    return ngx_sluice_images_generations;
}


/*
 * Brings the view to what is published; to be called before a request looks
 * at it.  SLUICE_CORE_OK; _NONE: nothing is published yet, or this is no
 * worker with images; else this worker cannot map what is, for that reason:
 * answer 503, which is counted here.
 */

int
sluice_images_refresh(void)
{
    int  rc;

    rc = ngx_sluice_images_refresh();

    if (rc != SLUICE_CORE_OK && rc != SLUICE_CORE_NONE) {
        (void) ngx_atomic_fetch_add(&ngx_sluice_images_control->failures, 1);
    }

    return rc;
}


int
ngx_sluice_images_refresh(void)
{
    int                  rc;
    uint64_t             sequence, began;
    sluice_core_page_t  *page;

    page = ngx_sluice_images_page;

    if (page == NULL || ngx_sluice_images.length == 0) {
        return SLUICE_CORE_NONE;
    }

    rc = ngx_sluice_images.rc;
    sequence = sluice_core_sequence(page);

    if (rc == SLUICE_CORE_OK || rc == SLUICE_CORE_NONE) {

        if (sequence == ngx_sluice_images.sequence) {
            return rc;
        }

    } else if (ngx_sluice_clock_ms(CLOCK_MONOTONIC)
               < ngx_sluice_images.again)
    {
        return rc;
    }

    began = ngx_sluice_clock_ms(CLOCK_MONOTONIC);

    rc = ngx_sluice_images_follow(page);
    ngx_sluice_images_note(rc, ngx_errno, began);

    return rc;
}


/* A file may go while we look for it, once another one is published. */

static int
ngx_sluice_images_follow(sluice_core_page_t *page)
{
    int                      rc;
    ngx_uint_t               i;
    sluice_core_published_t  published;

    rc = SLUICE_CORE_STALE;

    for (i = 0; i < NGX_SLUICE_IMAGES_TRIES; i++) {

        ngx_sluice_images.sequence = sluice_core_sequence(page);

        rc = sluice_core_published(page, &published);

        if (rc == SLUICE_CORE_OK) {
            rc = ngx_sluice_images_map(&published);
        }

        if (rc == SLUICE_CORE_OK
            || sluice_core_sequence(page) == ngx_sluice_images.sequence)
        {
            break;
        }
    }

    return rc;
}


static int
ngx_sluice_images_map(const sluice_core_published_t *published)
{
    int                   rc;
    uint64_t              dependents;
    sluice_core_view_t   *view;
    ngx_sluice_images_t  *images;

    images = &ngx_sluice_images;
    view = &images->view;

    ngx_sluice_digest_forget();

    if (view->base.base == NULL
        || published->base != images->live.base
        || published->delta != images->live.delta)
    {
        images->epoch++;

        rc = ngx_sluice_images_map_files(published);
        if (rc != SLUICE_CORE_OK) {
            return rc;
        }
    }

    view->revision = published->revision;

    /*
     * What is linked may be ahead of what is published: it counts when its
     * revision is seen.
     */

    dependents = ngx_min(sluice_core_dependents(view), view->revision);

    if (dependents != images->dependents) {
        images->dependents = dependents;
        images->epoch++;
    }

    return SLUICE_CORE_OK;
}


static int
ngx_sluice_images_map_files(const sluice_core_published_t *published)
{
    int                   rc, err;
    ngx_sluice_images_t  *images;

    images = &ngx_sluice_images;

    if (images->reserve != -1) {
        (void) close(images->reserve);
        images->reserve = -1;
    }

    rc = SLUICE_CORE_OK;

    if (images->view.base.base == NULL
        || published->base != images->live.base)
    {
        ngx_sluice_images_drop(&images->view.base);

        rc = sluice_core_file_open(
                 ngx_sluice_images_path("base", published->base), images->uid,
                 images->check, &images->view.base);

        images->live.base = published->base;

        if (rc == SLUICE_CORE_OK && ngx_sluice_images_mapped) {
            ngx_sluice_images_mapped();
        }
    }

    if (rc == SLUICE_CORE_OK && published->delta != images->live.delta) {
        ngx_sluice_images_drop(&images->view.delta);
        images->live.delta = 0;

        if (published->delta) {
            rc = sluice_core_delta_open(
                     ngx_sluice_images_path("delta", published->delta),
                     images->uid, images->check, &images->view.delta);
        }

        if (rc == SLUICE_CORE_OK) {
            images->live.delta = published->delta;
        }
    }

    err = ngx_errno;
    ngx_sluice_images_reserve();
    ngx_set_errno(err);

    return rc;
}


static const char *
ngx_sluice_images_path(const char *what, uint64_t number)
{
    ngx_sprintf(ngx_sluice_images.path + ngx_sluice_images.length,
                "/%s.%uL%Z", what, number);

    return (const char *) ngx_sluice_images.path;
}


/* For a moment in which none is left. */

static void
ngx_sluice_images_reserve(void)
{
    if (ngx_sluice_images.reserve == -1) {
        ngx_sluice_images.reserve = open("/dev/null", O_RDONLY|O_CLOEXEC);
    }
}


/* Who called may still look at it; nobody does in the next turn. */

static void
ngx_sluice_images_drop(sluice_core_space_t *space)
{
    ngx_event_t          *unmap;
    sluice_core_space_t  *old;

    if (space->base == NULL) {
        return;
    }

    old = ngx_sluice_images_old;

    if (ngx_sluice_images_olds == NGX_SLUICE_IMAGES_OLD) {
        sluice_core_file_close(&old[0]);
        ngx_memmove(&old[0], &old[1],
                    (NGX_SLUICE_IMAGES_OLD - 1) * sizeof(*old));
        ngx_sluice_images_olds--;
    }

    old[ngx_sluice_images_olds++] = *space;
    space->base = NULL;
    space->size = 0;

    unmap = &ngx_sluice_images_unmap;

    if (!unmap->posted) {
        unmap->handler = ngx_sluice_images_unmap_handler;
        unmap->log = ngx_cycle->log;
        unmap->data = &ngx_sluice_images_none;

        ngx_post_event(unmap, &ngx_posted_next_events);
    }
}


/* From its end, so that what is left begins where it did. */

static void
ngx_sluice_images_unmap_handler(ngx_event_t *e)
{
    uint64_t              left;
    sluice_core_space_t  *old, piece;

    old = &ngx_sluice_images_old[ngx_sluice_images_olds - 1];

    left = (old->size - 1) / NGX_SLUICE_IMAGES_PIECE * NGX_SLUICE_IMAGES_PIECE;

    piece.base = old->base + left;
    piece.size = old->size - left;
    old->size = left;

    sluice_core_file_close(&piece);

    if (left == 0) {
        ngx_sluice_images_olds--;
    }

    if (ngx_sluice_images_olds) {
        ngx_post_event(e, &ngx_posted_next_events);
    }
}


/* Says it in the log where it has changed, and to others in the block. */

static void
ngx_sluice_images_note(int rc, ngx_err_t err, uint64_t began)
{
    int       before;
    uint64_t  now, pause;

    before = ngx_sluice_images.rc;
    ngx_sluice_images.rc = rc;

    if (rc != SLUICE_CORE_OK && rc != SLUICE_CORE_NONE) {
        now = ngx_sluice_clock_ms(CLOCK_MONOTONIC);
        pause = ngx_max((now - began) * NGX_SLUICE_IMAGES_SHARE,
                        NGX_SLUICE_IMAGES_RETRY);

        ngx_sluice_images.again = now + ngx_min(pause,
                                                NGX_SLUICE_IMAGES_LATEST);
        ngx_sluice_images_failed((const char *) ngx_sluice_images.path,
                                 ngx_sluice_clock_ms(CLOCK_REALTIME),
                                 ngx_sluice_images_refresh);

        if (rc != before) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log,
                          rc == SLUICE_CORE_SYSTEM ? err : 0,
                          "sluice: cannot map \"%s\" (%s): requests are "
                          "answered 503", ngx_sluice_images.path,
                          sluice_core_word(rc));
        }

        return;
    }

    if (rc == SLUICE_CORE_OK) {
        ngx_sluice_images.check = SLUICE_CORE_HEADER_ONLY;
    }

    if (before != SLUICE_CORE_OK && before != SLUICE_CORE_NONE) {
        ngx_sluice_images_control->failed_at = 0;

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "sluice: what is published is mapped again");
    }
}


int
ngx_sluice_images_seen(const sluice_core_view_t **view)
{
    *view = &ngx_sluice_images.view;

    return ngx_sluice_images.rc;
}


/* What the last refresh has found; NULL unless that was SLUICE_CORE_OK. */

const sluice_core_view_t *
sluice_images_view(void)
{
    return ngx_sluice_images.rc == SLUICE_CORE_OK ? &ngx_sluice_images.view
                                                  : NULL;
}


/*
 * Grows when anything that plans are made of may have changed: files, or in
 * the delta what routes depend on.
 */

uint64_t
sluice_images_epoch(void)
{
    return ngx_sluice_images.epoch;
}
