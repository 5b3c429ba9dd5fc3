
/*
 * Processes that take turns at each atomic step, in an order by chance: of
 * what all ask at once exactly as much passes as may, also where the lines of
 * others come free under way, for some of them before others.
 *
 * The counters are compiled as for TSan, whose callbacks are ours: each atomic
 * access gives the turn to whoever is drawn.  A process is a context here.
 */


#include "meter_layout.h"
#include "support.h"

#include <stdlib.h>
#include <ucontext.h>


#define HOUR     (1770000000ull / 3600 * 3600)
#define MOST     4                         /* processes */
#define ASKS     2
#define STACK    (64 << 10)


typedef struct {
    ucontext_t           context;
    sluice_core_rule_t   rule;
    uint64_t             now;
    uint64_t             passed;
    int                  is_done;
    char                *stack;
} process_t;


static uint64_t               state, switches;
static uint64_t               left;            /* of the turn in hand */
static process_t              processes[MOST], *running;
static int                    count;
static ucontext_t             scheduler;
static uint8_t               *area;
static sluice_core_meter_t    meter;


static int
ask(sluice_core_rule_t *rule, const char *name, uint64_t now)
{
    int                   full;
    sluice_core_taken_t   taken;

    full = sluice_core_meter_take(&meter, rule, name, strlen(name), 0, now,
                                  &taken);
    test_check(full >= 0 && !taken.is_shared, "%s: no line", name);

    return full;
}


static void
run(void)
{
    int  i;

    for (i = 0; i < ASKS; i++) {
        running->passed += ask(&running->rule, "one", running->now) == 0;
    }

    running->is_done = 1;
}


/* Before each atomic step: is it another's turn? */

static void
step(void)
{
    if (running && left-- == 0) {
        switches++;
        (void) swapcontext(&running->context, &scheduler);
    }
}


static void
take_turns(uint64_t number)
{
    int                  i, n;
    char                 name[40];
    uint64_t             least, passed, fillers;
    sluice_core_rule_t   filler;
    uint64_t             limits[SLUICE_CORE_PERIODS] = { 0 };
    const uint64_t       seconds[SLUICE_CORE_PERIODS] = { 9 };

    memset(area, 0, SLUICE_CORE_METER_MIN);
    test_check(sluice_core_meter_init(area, SLUICE_CORE_METER_MIN,
                                      (const uint8_t *) "fedcba9876543210")
               == SLUICE_CORE_OK, "init");
    test_check(sluice_core_meter_attach(&meter, area, SLUICE_CORE_METER_MIN)
               == SLUICE_CORE_OK, "attach");

    sluice_core_rule_set(&filler, 2, 1, seconds, 14);

    for (fillers = test_below(&state, 11); fillers > 0; fillers--) {
        (void) snprintf(name, sizeof(name), "%lu", test_random(&state));
        (void) ask(&filler, name, HOUR - test_below(&state, 3));
    }

    count = 2 + (int) test_below(&state, MOST - 1);
    least = (uint64_t) count * ASKS;

    for (n = SLUICE_CORE_HOUR; n <= SLUICE_CORE_DAY; n++) {
        limits[n] = 1 + test_below(&state, (uint64_t) count * ASKS + 1);
        least = limits[n] < least ? limits[n] : least;
    }

    for (i = 0; i < count; i++) {
        sluice_core_rule_set(&processes[i].rule, 1, 1, limits, 5);
        processes[i].now = HOUR + 2 + test_below(&state, 3);
        processes[i].passed = 0;
        processes[i].is_done = 0;

        (void) getcontext(&processes[i].context);
        processes[i].context.uc_stack.ss_sp = processes[i].stack;
        processes[i].context.uc_stack.ss_size = STACK;
        processes[i].context.uc_link = &scheduler;
        makecontext(&processes[i].context, run, 0);
    }

    for (n = count; n > 0; ) {
        running = &processes[test_below(&state, (uint64_t) count)];

        if (!running->is_done) {
            left = test_below(&state, 1u << test_below(&state, 7));
            (void) swapcontext(&scheduler, &running->context);
            n -= running->is_done;
        }
    }

    running = NULL;

    for (i = 0, passed = 0; i < count; i++) {
        passed += processes[i].passed;
    }

    test_check(passed == least, "%lu: %lu passed, not %lu", number, passed,
               least);
}


#define turns_plain(n)                                                        \
    void __tsan_read##n(void *p);                                             \
    void __tsan_unaligned_read##n(void *p);                                   \
    void __tsan_write##n(void *p);                                            \
    void __tsan_unaligned_write##n(void *p);                                  \
    void __tsan_read##n(void *p) { (void) p; }                                \
    void __tsan_unaligned_read##n(void *p) { (void) p; }                      \
    void __tsan_write##n(void *p) { (void) p; }                               \
    void __tsan_unaligned_write##n(void *p) { (void) p; }

turns_plain(1)
turns_plain(2)
turns_plain(4)
turns_plain(8)
turns_plain(16)

void __tsan_init(void);
void __tsan_func_entry(void *p);
void __tsan_func_exit(void);
void __tsan_read_range(void *p, size_t n);
void __tsan_write_range(void *p, size_t n);
uint64_t __tsan_atomic64_load(const uint64_t *p, int order);
int __tsan_atomic64_compare_exchange_strong(uint64_t *p, uint64_t *seen,
    uint64_t v, int order, int failed);
int __tsan_atomic64_compare_exchange_weak(uint64_t *p, uint64_t *seen,
    uint64_t v, int order, int failed);

void __tsan_init(void) { /* void */ }
void __tsan_func_entry(void *p) { (void) p; }
void __tsan_func_exit(void) { /* void */ }
void __tsan_read_range(void *p, size_t n) { (void) p; (void) n; }
void __tsan_write_range(void *p, size_t n) { (void) p; (void) n; }


uint64_t
__tsan_atomic64_load(const uint64_t *p, int order)
{
    (void) order;
    step();

    return *(const volatile uint64_t *) p;
}


int
__tsan_atomic64_compare_exchange_strong(uint64_t *p, uint64_t *seen,
    uint64_t v, int order, int failed)
{
    (void) order;
    (void) failed;
    step();

    if (*p != *seen) {
        *seen = *p;
        return 0;
    }

    *p = v;

    return 1;
}


int
__tsan_atomic64_compare_exchange_weak(uint64_t *p, uint64_t *seen, uint64_t v,
    int order, int failed)
{
    return __tsan_atomic64_compare_exchange_strong(p, seen, v, order, failed);
}


int
main(void)
{
    int       i;
    uint64_t  n, ops;

    state = test_seed("meter_turns");
    ops = test_env("OPS", 20000);
    area = aligned_alloc(SLUICE_CORE_LINE, SLUICE_CORE_METER_MIN);

    for (i = 0; i < MOST; i++) {
        processes[i].stack = malloc(STACK);
    }

    for (n = 0; n < ops; n++) {
        take_turns(n);
    }

    printf("meter_turns: %lu times, %lu switches\n", ops, switches);

    return 0;
}
