
/*
 * Creates a delta.
 */


#include "layout.h"
#include "delta.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>


#define CORE_PER_BUCKET  256       /* bytes of a delta for each chain */


int
sluice_core_delta_create(const char *path, uint64_t size,
    const sluice_core_identity_t *identity, sluice_core_writer_t *writer)
{
    int    fd, rc, err;
    void  *p;

    if (size < SLUICE_CORE_DELTA_MIN || size > SLUICE_CORE_DELTA_MAX) {
        return SLUICE_CORE_LARGE;
    }

    fd = open(path, O_RDWR|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600);
    if (fd == -1) {
        return SLUICE_CORE_SYSTEM;
    }

    err = posix_fallocate(fd, 0, (off_t) size);

    if (err != 0) {
        goto failed;
    }

    p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        err = errno;
        goto failed;
    }

    (void) madvise(p, size, MADV_DONTDUMP);
    (void) close(fd);

    rc = sluice_core_delta_init(p, size, identity, writer);

    if (rc != SLUICE_CORE_OK) {
        (void) munmap(p, size);
        (void) unlink(path);
    }

    return rc;

failed:

    (void) close(fd);
    (void) unlink(path);
    errno = err;

    return SLUICE_CORE_SYSTEM;
}


/* magic is written last: what has it is whole. */

int
sluice_core_delta_init(void *memory, uint64_t size,
    const sluice_core_identity_t *identity, sluice_core_writer_t *writer)
{
    uint64_t              buckets;
    sluice_core_delta_t  *delta;

    if (size < SLUICE_CORE_DELTA_MIN || size > SLUICE_CORE_DELTA_MAX
        || size % SLUICE_CORE_LINE
        || (uintptr_t) memory % SLUICE_CORE_LINE)
    {
        return SLUICE_CORE_LARGE;
    }

    for (buckets = 64; buckets < size / CORE_PER_BUCKET; buckets *= 2) {
        /* void */
    }

    delta = memory;
    delta->layout = SLUICE_CORE_LAYOUT;
    delta->size = size;
    delta->since = identity->revision;
    memcpy(delta->store, identity->store, sizeof(delta->store));
    delta->buckets = buckets;
    delta->arena = sluice_core_align(sizeof(sluice_core_delta_t) + 4 * buckets,
                                     SLUICE_CORE_LINE);
    atomic_store(&delta->used, delta->arena);
    atomic_store(&delta->seals[0].used, delta->arena);
    delta->magic = SLUICE_CORE_DELTA_MAGIC;

    memset(writer, 0, sizeof(sluice_core_writer_t));
    writer->space.base = memory;
    writer->space.size = size;
    writer->tail = delta->arena;
    writer->linked = delta->arena;

    return SLUICE_CORE_OK;
}
