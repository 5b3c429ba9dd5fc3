
/*
 * Machine instructions of a try and of a decision, one by one; and how full an
 * area may be before who comes last gets no line.
 */


#include "make.h"
#include "balancer.h"
#include "meter.h"
#include "stepper.h"

#include <stdlib.h>


#define NOW      1770000000ull
#define TARGETS  500


static uint8_t                 *few, *many;
static uint64_t                 tried[(TARGETS + 63) / 64], down[TARGETS];
static sluice_balancer_position_t  position;
static sluice_core_meter_t         meter;
static sluice_core_rule_t          rule;
static sluice_core_taken_t         taken;


static void
ask(const char *name)
{
    (void) sluice_core_meter_take(&meter, &rule, name, 16, 0, NOW, &taken);
}


static void
try(const uint8_t *balancer)
{
    (void) sluice_balancer_pick((const void *) balancer, &position, 1, down,
                                tried);
}


static void nothing(void) { /* void */ }
static void try_few(void) { try(few); }
static void try_many(void) { try(many); }
static void retry_many(void) { try(many); try(many); }
static void known(void) { ask("a known consumer"); }
static void refused(void) { ask("one that is full"); }
static void new(void) { ask("who is new to it"); }


static uint64_t
count(void (*verb)(void))
{
    pid_t     pid;
    uint64_t  n;

    pid = stepper_start(NULL, verb);

    for (n = 0; !stepper_step(pid); n++) { /* void */ }

    stepper_end(pid);

    return n;
}


static uint8_t *
build(uint32_t targets)
{
    uint32_t   i, weights[TARGETS];
    uint8_t   *balancer;
    uint64_t   used, size;

    for (i = 0; i < targets; i++) {
        weights[i] = 1 + i % 3;
    }

    size = sluice_balancer_bound(targets, 10000);
    balancer = make_memory(size);
    test_check(sluice_balancer_build(weights, targets, 10000, balancer,
                                     size, &used) == SLUICE_CORE_OK,
               "build");

    return balancer;
}


static void
count_all(void)
{
    size_t           i;
    uint64_t         none;

    static const struct {
        const char  *name;
        void       (*verb)(void);
    } verbs[] = {
        { "a first try, 5 targets", try_few },
        { "a first try, 500 targets", try_many },
        { "a first try and a retry, 500 targets", retry_many },
        { "a decision, two windows", known },
        { "a decision that refuses", refused },
        { "a decision for a new identifier", new },
    };

    none = count(nothing);

    for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        printf("%-38s %5lu instructions\n", verbs[i].name,
               count(verbs[i].verb) - none);
    }
}


static void
fill(uint64_t lines)
{
    char      name[24];
    uint64_t  i, shared, every;

    every = lines / 10;

    for (i = 1, shared = 0; i <= lines; i++) {
        (void) snprintf(name, sizeof(name), "%-16lu", i);
        ask(name);
        shared += taken.is_shared;

        if (i % every == 0 && i <= 6 * every) {
            printf("%lu identifiers in %lu lines: %lu without one\n", i,
                   lines, shared);
        }
    }
}


int
main(void)
{
    int              i;
    void            *memory;
    uint64_t         size;
    const uint64_t   limits[SLUICE_CORE_PERIODS] = { 0, 100, 1000 };

    (void) test_seed("state_cost");
    few = build(5);
    many = build(TARGETS);

    size = 12u << 20;
    memory = make_memory(size);
    memset(memory, 0, size);
    test_check(sluice_core_meter_init(memory, size,
                                      (const uint8_t *) "0123456789abcdef")
               == SLUICE_CORE_OK, "init");
    test_check(sluice_core_meter_attach(&meter, memory, size)
               == SLUICE_CORE_OK, "attach");
    sluice_core_rule_set(&rule, 1, 1, limits,
                         sluice_core_meter_share(&meter, 1));

    ask("a known consumer");

    for (i = 0; i < 200; i++) {
        ask("one that is full");
    }

    count_all();
    fill(meter.groups * 8);

    return 0;
}
