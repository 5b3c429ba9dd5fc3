
/*
 * How the log is made: a memfd, its areas, and how a log is recognised.
 */


#include "ring_layout.h"
#include "ring_mutex.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


/* Where the areas are in the file; two numbers of its identity say it. */

typedef struct {
    size_t  slots;
    size_t  entries;
    size_t  data;
    size_t  end;
} sluice_ring_areas_t;


static void sluice_ring_areas(uint64_t size, uint32_t slots,
    sluice_ring_areas_t *areas);
static int sluice_ring_map(sluice_ring_t *ring, uint64_t size,
    uint32_t slots);
static int sluice_ring_init(sluice_ring_t *ring, uint64_t size,
    uint32_t stall_ms);
static void sluice_ring_identity(sluice_ring_identity_t *id, uint64_t size,
    uint32_t slots, uint64_t seed);
static uint64_t sluice_ring_now_ms(void);


int
sluice_ring_create(sluice_ring_t *ring, size_t size, uint32_t slots,
    uint32_t stall_ms)
{
    int                  fd, err;
    uint64_t             n;
    sluice_ring_areas_t  areas;

    for (n = SLUICE_RING_SIZE_MIN; n < size && n < SLUICE_RING_SIZE_MAX; ) {
        n *= 2;
    }

    if (slots == 0 || slots > SLUICE_RING_SLOTS) {
        errno = EINVAL;
        return SLUICE_SYSTEM;
    }

    sluice_ring_areas(n, slots, &areas);

    fd = memfd_create("sluice-events", MFD_ALLOW_SEALING);
    if (fd == -1) {
        return SLUICE_SYSTEM;
    }

    /* a file that cannot shrink cannot kill its readers with SIGBUS */

    if (ftruncate(fd, (off_t) areas.end) == -1
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK|F_SEAL_GROW|F_SEAL_SEAL) == -1)
    {
        goto failed;
    }

    memset(ring, 0, sizeof(sluice_ring_t));
    ring->fd = fd;

    if (sluice_ring_map(ring, n, slots) != SLUICE_OK) {
        goto failed;
    }

    if (sluice_ring_init(ring, n, stall_ms) != SLUICE_OK) {
        sluice_ring_close(ring);
        goto failed;
    }

    return SLUICE_OK;

failed:

    err = errno;
    (void) close(fd);
    errno = err;

    return SLUICE_SYSTEM;
}


int
sluice_ring_open(sluice_ring_t *ring, int fd)
{
    ssize_t                  n;
    struct stat              st;
    sluice_ring_areas_t      areas;
    sluice_ring_identity_t   id, own;

    n = pread(fd, &id, sizeof(id), 0);
    if (n == -1) {
        return SLUICE_SYSTEM;
    }

    if (n != sizeof(id)
        || atomic_load(&id.magic) != SLUICE_RING_MAGIC
        || id.size < SLUICE_RING_SIZE_MIN || id.size > SLUICE_RING_SIZE_MAX
        || (id.size & (id.size - 1))
        || id.slots == 0 || id.slots > SLUICE_RING_SLOTS)
    {
        return SLUICE_BAD;
    }

    sluice_ring_identity(&own, id.size, id.slots, id.seed);

    if (memcmp(&own, &id, offsetof(sluice_ring_identity_t, magic)) != 0) {
        return SLUICE_VERSION;
    }

    sluice_ring_areas(id.size, id.slots, &areas);

    if (fstat(fd, &st) == -1) {
        return SLUICE_SYSTEM;
    }

    if (st.st_size != (off_t) areas.end) {
        return SLUICE_BAD;
    }

    memset(ring, 0, sizeof(sluice_ring_t));
    ring->fd = fd;
    ring->seed = id.seed;

    return sluice_ring_map(ring, id.size, id.slots);
}


void
sluice_ring_close(sluice_ring_t *ring)
{
    (void) munmap(ring->map, ring->mapped);
    memset(ring, 0, sizeof(sluice_ring_t));
    ring->fd = -1;
}


static void
sluice_ring_areas(uint64_t size, uint32_t slots, sluice_ring_areas_t *areas)
{
    size_t  n, mask;

    mask = SLUICE_RING_ALIGN - 1;

    areas->slots = sizeof(sluice_ring_control_t);
    areas->entries = areas->slots + slots * sizeof(sluice_ring_slot_t);

    n = areas->entries
        + size / SLUICE_RING_PER_KEY * sizeof(sluice_ring_entry_t);

    areas->data = (n + mask) & ~mask;
    areas->end = areas->data + size;
}


/*
 * One reservation, so that the file's end, where data is mapped once more, is
 * next to data, and a page without access behind it.
 */

static int
sluice_ring_map(sluice_ring_t *ring, uint64_t size, uint32_t slots)
{
    int                   err, prot;
    size_t                mapped;
    uint8_t              *p;
    sluice_ring_areas_t   areas;

    sluice_ring_areas(size, slots, &areas);

    prot = PROT_READ|PROT_WRITE;
    mapped = areas.end + size + SLUICE_RING_ALIGN;

    p = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE,
             -1, 0);
    if (p == MAP_FAILED) {
        return SLUICE_SYSTEM;
    }

    if (mmap(p, areas.end, prot, MAP_SHARED|MAP_FIXED, ring->fd, 0)
        == MAP_FAILED
        || mmap(p + areas.end, size, prot, MAP_SHARED|MAP_FIXED, ring->fd,
                (off_t) areas.data)
        == MAP_FAILED)
    {
        err = errno;
        (void) munmap(p, mapped);
        errno = err;
        return SLUICE_SYSTEM;
    }

    ring->map = p;
    ring->mapped = mapped;
    ring->control = (sluice_ring_control_t *) p;
    ring->slots = (sluice_ring_slot_t *) (p + areas.slots);
    ring->entries = (sluice_ring_entry_t *) (p + areas.entries);
    ring->data = p + areas.data;

    ring->size = size;
    ring->mask = size - 1;
    ring->buckets = size / SLUICE_RING_PER_KEY / SLUICE_RING_BUCKET - 1;
    ring->limit = size / 8 < SLUICE_RING_FRAME_MAX ? (uint32_t) (size / 8)
                                                   : SLUICE_RING_FRAME_MAX;
    ring->count = slots;
    ring->index = SLUICE_RING_NOBODY;
    ring->clock = sluice_ring_now_ms;

    return SLUICE_OK;
}


static int
sluice_ring_init(sluice_ring_t *ring, uint64_t size, uint32_t stall_ms)
{
    uint32_t                i;
    uint64_t                seed;
    sluice_ring_control_t  *c;

    c = ring->control;

    if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)
        || sluice_ring_mutex_init(&c->mutex) != SLUICE_OK)
    {
        return SLUICE_SYSTEM;
    }

    for (i = 0; i < ring->count; i++) {
        if (sluice_ring_mutex_init(&ring->slots[i].alive) != SLUICE_OK) {
            return SLUICE_SYSTEM;
        }
    }

    ring->seed = seed;

    atomic_store(&c->stall_ms, stall_ms);
    sluice_ring_identity(&c->identity, size, ring->count, seed);
    atomic_store(&c->identity.magic, SLUICE_RING_MAGIC);

    return SLUICE_OK;
}


static void
sluice_ring_identity(sluice_ring_identity_t *id, uint64_t size, uint32_t slots,
    uint64_t seed)
{
    id->size = size;
    id->seed = seed;
    id->layout = SLUICE_RING_LAYOUT;
    id->slots = slots;
    id->control_size = sizeof(sluice_ring_control_t);
    id->slot_size = sizeof(sluice_ring_slot_t);
    id->entry_size = sizeof(sluice_ring_entry_t);
    id->header_size = sizeof(sluice_ring_header_t);
    id->mutex_size = sizeof(pthread_mutex_t);
    id->zero = 0;
}


void
sluice_ring_set_wake(sluice_ring_t *ring, sluice_ring_wake_pt wake, void *data)
{
    ring->wake = wake;
    ring->wake_data = data;
}


void
sluice_ring_set_redeliver(sluice_ring_t *ring,
    sluice_ring_redeliver_pt redeliver, void *data)
{
    ring->redeliver = redeliver;
    ring->redeliver_data = data;
}


static uint64_t
sluice_ring_now_ms(void)
{
    struct timespec  ts;

    /* a few ns, and behind by up to a tick, 4 ms at most */
    (void) clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);

    return (uint64_t) ts.tv_sec * 1000u + (uint64_t) ts.tv_nsec / 1000000u;
}


void
sluice_ring_set_clock(sluice_ring_t *ring, sluice_ring_clock_pt clock)
{
    ring->clock = clock ? clock : sluice_ring_now_ms;
}


void
sluice_ring_set_stall(sluice_ring_t *ring, uint32_t stall_ms)
{
    atomic_store(&ring->control->stall_ms, stall_ms);
}
