
/*
 * An image that is built and written by a thread of its own.
 */


#include "core.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>


#define CORE_LINE  64


static void *core_work_thread(void *data);
static int core_build_file(sluice_core_work_t *work);


void
sluice_core_work_begin(sluice_core_work_t *work)
{
    sigset_t   all, old;
    pthread_t  thread;

    /* signals are the process's, for a thread that waits for them */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &old);

    work->is_begun = pthread_create(&thread, NULL, core_work_thread, work)
                     == 0;
    work->thread = work->is_begun ? (uint64_t) thread : 0;

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
}


int
sluice_core_work_end(sluice_core_work_t *work)
{
    if (!work->is_begun) {
        (void) core_work_thread(work);

    } else {
        (void) pthread_join((pthread_t) work->thread, NULL);
    }

    work->is_begun = 0;
    errno = work->error;

    return work->rc;
}


static void *
core_work_thread(void *data)
{
    sluice_core_work_t  *work = data;

    errno = 0;
    work->rc = core_build_file(work);
    work->error = errno;

    return NULL;
}


static int
core_build_file(sluice_core_work_t *work)
{
    int        rc, err;
    void      *buffer;
    uint64_t   bound;

    bound = sluice_core_image_bound(work->entities, work->count);
    bound = (bound + CORE_LINE - 1) / CORE_LINE * CORE_LINE;

    buffer = aligned_alloc(CORE_LINE, bound);
    if (buffer == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    rc = sluice_core_image_build(&work->identity, work->entities, work->count,
                                 buffer, bound, &work->size);

    if (rc == SLUICE_CORE_OK) {
        rc = sluice_core_file_write(work->path, buffer, work->size, 0);
    }

    err = errno;
    free(buffer);
    errno = err;

    return rc;
}
