
/*
 * Series where a process dies at any instruction of a request: of its values
 * there is one line all the same, it takes one with it at most, and what
 * others have counted stays.
 */


#include "make.h"
#include "series_layout.h"
#include "stepper.h"

#include <sys/mman.h>


#define LINES  4


static uint64_t          state, size;
static uint8_t          *area, *before;
static sluice_series_t   series;

static const sluice_series_shape_t  shape = {
    { LINES, 1, 1 }, { 1, 1, 1 }, 1, 64
};


static uint32_t
count(const char *name)
{
    uint32_t            line;
    sluice_core_text_t  values[2];

    values[0].data = name;
    values[0].length = (uint32_t) strlen(name);
    values[1].data = NULL;
    values[1].length = 0;

    line = sluice_series_find(&series, 0, values, 2);
    sluice_series_add(sluice_series_numbers(&series, 0, line), 1);

    return line;
}


static void
reset(void)
{
    memcpy(area, before, size);
}


static void
verb(void)
{
    (void) count("new");
}


static void
after(int whole)
{
    uint32_t  line, used;
    uint64_t  number;

    used = sluice_series_used(&series, 0);
    line = count("new");
    number = *sluice_series_numbers(&series, 0, line);

    test_check(line == 2 || line == 3, "line %u", line);
    test_check(number == 2 || (number == 1 && !whole), "%lu", number);
    test_check(sluice_series_used(&series, 0) <= 3 && (!whole || used == 2),
               "%u lines", used);

    test_check(count("old") == 1, "another line of what was there");
    test_check(*sluice_series_numbers(&series, 0, 1) == 2, "its count");
    test_check(count("next") != 0, "no line for the next");
}


static const stepper_case_t  of_new = {
    "a request with new values", reset, verb, after
};


int
main(void)
{
    state = test_seed("series_step");
    size = sluice_series_size(&shape);
    area = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                -1, 0);
    before = make_memory(size);

    test_check(sluice_series_init(area, size, &shape,
                                  (const uint8_t *) "0123456789abcdef")
               == SLUICE_CORE_OK
               && sluice_series_attach(&series, area, size) == SLUICE_CORE_OK,
               "an area");
    sluice_series_use(&series, 0);
    (void) count("old");
    memcpy(before, area, size);

    stepper_run(&of_new, test_env("LIMIT", 3000), &state);

    return 0;
}
