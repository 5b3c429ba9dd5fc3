
/* A thread makes the file that the builder makes, and says why it cannot. */


#include "make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define MOST  (SLUICE_CORE_KINDS * MAKE_SLOTS)


static uint64_t              state;
static make_t                make;
static sluice_core_entity_t  list[MOST];


static sluice_core_work_t
work_on(const char *path, size_t count)
{
    sluice_core_work_t  work;

    memset(&work, 0, sizeof(work));
    memset(&work.identity, 7, sizeof(work.identity));
    work.identity.revision = 5;
    work.entities = list;
    work.count = count;
    work.path = path;

    return work;
}


/* The caller builds the same meanwhile. */

static void
check_file(size_t count, int is_begun)
{
    int                   rc;
    uint8_t              *image;
    uint64_t              size;
    sluice_core_work_t    work;
    sluice_core_space_t   space;

    work = work_on("image", count);

    if (is_begun) {
        sluice_core_work_begin(&work);
    }

    image = make_image(list, count, 5, &size);

    rc = sluice_core_work_end(&work);
    test_check(rc == SLUICE_CORE_OK && work.size == size, "work: %s",
               sluice_core_word(rc));

    rc = sluice_core_file_open("image", (uint32_t) geteuid(),
                               SLUICE_CORE_CHECK, &space);
    test_check(rc == SLUICE_CORE_OK && space.size == size
               && memcmp(space.base, image, size) == 0, "other bytes");

    sluice_core_file_close(&space);
    test_check(unlink("image") == 0, "unlink");
    free(image);
}


static int
fail_at(const char *path, size_t count)
{
    sluice_core_work_t  work;

    work = work_on(path, count);
    sluice_core_work_begin(&work);

    return sluice_core_work_end(&work);
}


int
main(void)
{
    int       rc;
    char      folder[] = "/tmp/sluice-core-XXXXXX";
    size_t    count;
    uint64_t  i, n;

    state = test_seed("background");
    n = test_env("OPS", 100);
    test_check(mkdtemp(folder) != NULL && chdir(folder) == 0, "folder");

    for (i = 0; i < n; i++) {
        make_start(&make, &state);
        make_entity(&make, SLUICE_CORE_ROUTE, (uint32_t) i % MAKE_SLOTS, 1);
        count = make_list(&make, list);

        /* as well where no thread can be had */

        check_file(count, i % 4 != 0);

        rc = fail_at("no/image", count);
        test_check(rc == SLUICE_CORE_SYSTEM && errno == ENOENT, "no folder");

        list[count] = list[0];
        rc = fail_at("image", count + 1);
        test_check(rc == SLUICE_CORE_REPEAT && access("image", F_OK) == -1,
                   "one slot: %s", sluice_core_word(rc));

        make_end(&make);
    }

    test_check(rmdir(folder) == 0, "something was left behind");

    return 0;
}
