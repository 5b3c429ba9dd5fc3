
/*
 * A worker that cannot map what is live (ngx_sluice_images.h): others are to
 * know, and what is damaged is to be mended.
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_sluice_images.h"

#include <fcntl.h>
#include <sys/stat.h>


#define NGX_SLUICE_IMAGES_FAILED  1000   /* ms, between two tries */


static void ngx_sluice_images_failed_touch(const char *path);
static void ngx_sluice_images_failed_handler(ngx_event_t *e);


/* nginx's debug log wants a connection of each event */

static ngx_connection_t  ngx_sluice_images_failed_none = {
    .fd = (ngx_socket_t) -1
};
static ngx_event_t       ngx_sluice_images_failed_event;

static ngx_sluice_refresh_pt  ngx_sluice_images_failed_refresh;


/*
 * It tries again each second, with or without requests: as long as it cannot,
 * the block says so (lib/sluice/ffi/images.lua).
 */

void
ngx_sluice_images_failed(const char *path, uint64_t now,
    ngx_sluice_refresh_pt refresh)
{
    ngx_event_t  *e;

    ngx_sluice_images_control->failed_at = now;

    ngx_sluice_images_failed_touch(path);

    ngx_sluice_images_failed_refresh = refresh;

    e = &ngx_sluice_images_failed_event;

    if (!e->timer_set) {
        e->handler = ngx_sluice_images_failed_handler;
        e->log = ngx_cycle->log;
        e->data = &ngx_sluice_images_failed_none;
        e->cancelable = 1;

        ngx_add_timer(e, NGX_SLUICE_IMAGES_FAILED);
    }
}


/*
 * The kernel tells the control worker of files that are written to, but not of
 * those that are damaged through a mapping, or by the memory: of this change
 * it does, and the control worker looks (gateway/writer/maintenance.lua).  A
 * file that has gone it was told of.  Once a second at most: where nothing can
 * be mended, each touch has all of the files checked.
 */

static void
ngx_sluice_images_failed_touch(const char *path)
{
    static ngx_uint_t  touched;
    static ngx_msec_t  at;

    if (touched && ngx_current_msec - at < NGX_SLUICE_IMAGES_FAILED) {
        return;
    }

    touched = 1;
    at = ngx_current_msec;

    if (utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == -1
        && ngx_errno != NGX_ENOENT)
    {
        ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, ngx_errno,
                      "sluice: utimensat(\"%s\") failed", path);
    }
}


static void
ngx_sluice_images_failed_handler(ngx_event_t *e)
{
    int  rc;

    rc = ngx_sluice_images_failed_refresh();

    if (rc != SLUICE_CORE_OK && rc != SLUICE_CORE_NONE && !e->timer_set) {
        ngx_add_timer(e, NGX_SLUICE_IMAGES_FAILED);
    }
}
