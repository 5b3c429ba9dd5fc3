
/*
 * An image that is large enough for huge pages: aligned, the same bytes, and
 * nothing else is mapped or stays mapped.
 */


#include "make.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


#define LARGE_PAGE  (2u << 20)


static unsigned maps_count(void);
static void check(const uint8_t *image, uint64_t size, int counts);


/* Lines of /proc/self/maps. */

static unsigned
maps_count(void)
{
    int        c;
    FILE      *file;
    unsigned   count;

    file = fopen("/proc/self/maps", "r");
    test_check(file != NULL, "maps");

    for (count = 0; (c = fgetc(file)) != EOF; count += (c == '\n')) {
        /* void */
    }

    (void) fclose(file);

    return count;
}


/* counts: the allocator has what it needs */

static void
check(const uint8_t *image, uint64_t size, int counts)
{
    int                  rc;
    char                 path[] = "/dev/shm/sluice-core-XXXXXX";
    unsigned             maps;
    sluice_core_space_t  space;

    rc = mkstemp(path);
    test_check(rc != -1 && close(rc) == 0, "file");

    maps = maps_count();

    rc = sluice_core_file_write(path, image, size, 0);
    test_check(rc == SLUICE_CORE_OK, "write: %s", sluice_core_word(rc));

    rc = sluice_core_file_open(path, (uint32_t) geteuid(), SLUICE_CORE_CHECK,
                               &space);
    test_check(rc == SLUICE_CORE_OK && space.size == size
               && memcmp(space.base, image, size) == 0, "open: %s",
               sluice_core_word(rc));
    test_check((uintptr_t) space.base % LARGE_PAGE == 0, "alignment");
    test_check(!counts || maps_count() == maps + 1,
               "something else was mapped");

    sluice_core_file_close(&space);
    test_check(!counts || maps_count() == maps, "something is left");

    test_check(unlink(path) == 0, "unlink");
}


int
main(void)
{
    char                  *text;
    uint8_t               *image;
    uint32_t               i;
    uint64_t               size;
    sluice_core_entity_t   services[5];

    text = make_memory(SLUICE_CORE_TEXT_MAX);
    memset(text, 'a', SLUICE_CORE_TEXT_MAX);
    memset(services, 0, sizeof(services));

    for (i = 0; i < 5; i++) {
        services[i].kind = SLUICE_CORE_SERVICE;
        services[i].slot = i;
        services[i].fields[SLUICE_CORE_SERVICE_PATH].data = text;
        services[i].fields[SLUICE_CORE_SERVICE_PATH].count =
                                                  SLUICE_CORE_TEXT_MAX - i * 9;
    }

    image = make_image(services, 5, 3, &size);
    test_check(size > 2 * LARGE_PAGE && size % LARGE_PAGE, "size");

    check(image, size, 0);
    check(image, size, 1);

    free(image);
    free(text);

    return 0;
}
