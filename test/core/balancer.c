
/*
 * Balancers beside a slow one, tries beside what must hold of them, and
 * hostile bytes.
 */


#include "make.h"
#include "balancer.h"

#include <stdlib.h>


#define MOST_TARGETS  300
#define MOST_PICKS    2000


typedef struct {
    uint32_t   weights[MOST_TARGETS];
    uint32_t   count;
    uint32_t   slots;
    uint32_t   picks[MOST_PICKS];
    uint32_t   length;
} model_t;


static uint64_t  state;


static uint8_t *
build(const uint32_t *weights, uint32_t count, uint32_t slots, uint64_t *size)
{
    uint8_t   *memory, *balancer;
    uint64_t   bound;

    bound = sluice_balancer_bound(count, slots);
    memory = make_memory(bound);
    test_check(sluice_balancer_build(weights, count, slots, memory, bound,
                                     size) == SLUICE_CORE_OK, "build");
    test_check(*size <= bound, "%lu of %lu", *size, bound);

    balancer = make_memory(*size);
    memcpy(balancer, memory, *size);
    free(memory);
    test_check(sluice_balancer_check(balancer, *size) == SLUICE_CORE_OK,
               "a fresh one is bad");

    return balancer;
}


/* Turn after pick by looking at all: whose next place comes first? */

static void
model_build(model_t *model)
{
    uint32_t  i, best, taken[MOST_TARGETS];
    uint64_t  divisor, total, picks[MOST_TARGETS];

    for (divisor = SLUICE_BALANCER_WEIGHT_MAX; divisor > 1; divisor--) {

        for (i = 0; i < model->count && model->weights[i] % divisor == 0;
             i++)
        { /* void */ }

        if (i == model->count) {
            break;
        }
    }

    for (i = 0, total = 0; i < model->count; i++) {
        total += model->weights[i] / divisor;
    }

    for (i = 0; i < model->count; i++) {
        picks[i] = model->weights[i] / divisor;
        taken[i] = 0;

        if (picks[i] && total > model->slots) {
            picks[i] = (uint64_t) ((double) picks[i] * model->slots
                                   / (double) total + 0.5);
            picks[i] = picks[i] ? picks[i] : 1;
        }
    }

    for (model->length = 0; ; model->length++) {
        best = MOST_TARGETS;

        for (i = 0; i < model->count; i++) {

            if (taken[i] < picks[i]
                && (best == MOST_TARGETS
                    || (2 * taken[i] + 1) * picks[best]
                       < (2 * taken[best] + 1) * picks[i]))
            {
                best = i;
            }
        }

        if (best == MOST_TARGETS) {
            return;
        }

        taken[best]++;
        model->picks[model->length] = best;
    }
}


static void
model_make(model_t *model)
{
    uint32_t               i;
    static const uint32_t  most[] = { 1, 2, 5, 100,
                                      SLUICE_BALANCER_WEIGHT_MAX };

    model->count = (uint32_t) test_below(&state, test_below(&state, 4) ? 12
                                         : MOST_TARGETS);
    model->slots = 1 + (uint32_t) test_below(&state, 1500);

    for (i = 0; i < model->count; i++) {
        model->weights[i] = (uint32_t) test_below(&state,
                                   most[test_below(&state, 5)] + 1u);
    }

    model_build(model);
}


static void
compare_picks(const model_t *model, const uint8_t *balancer)
{
    int                          target;
    uint32_t                     i;
    sluice_balancer_position_t   position;
    const void                  *r = balancer;

    memset(&position, 0, sizeof(position));
    test_check(sluice_balancer_length(r) == model->length,
               "%u picks, not %u", sluice_balancer_length(r),
               model->length);

    for (i = 0; i < 3 * model->length; i++) {
        target = sluice_balancer_pick(r, &position, 0, NULL, NULL);
        test_check(target == (int) model->picks[i % model->length],
                   "pick %u: %d, not %u", i, target,
                   model->picks[i % model->length]);
    }

    if (model->length == 0) {
        test_check(sluice_balancer_pick(r, &position, 0, NULL, NULL)
                   == SLUICE_CORE_NONE, "one of none");
    }
}


/* Any bits of down: what must hold of all tries of a request. */

static void
check_tries(const model_t *model, const uint8_t *balancer)
{
    int                      target, up, left;
    uint32_t                 i, n, words;
    uint64_t                 down[8], tried[8], before;
    sluice_balancer_position_t  position;

    words = sluice_balancer_words((const void *) balancer);
    memset(tried, 0, sizeof(tried));
    position.word = test_random(&state);

    for (i = 0; i < 8; i++) {
        down[i] = test_random(&state);

        if (test_below(&state, 2)) {
            down[i] |= test_random(&state) | test_random(&state);
        }
    }

    for (n = 0; n < model->count + 5; n++) {

        for (i = 0, up = 0, left = 0; i < model->count; i++) {

            if (model->weights[i] && !(down[i / 64] >> i % 64 & 1)) {
                up++;
                left += !(tried[i / 64] >> i % 64 & 1);
            }
        }

        before = position.word;
        target = sluice_balancer_pick((const void *) balancer, &position, 7,
                                      down, tried);

        if (left == 0) {
            test_check(target == SLUICE_CORE_NONE, "%d of none", target);
            test_check(position.word == before, "it took a pick");

            if (up == 0) {
                return;
            }

            memset(tried, 0, sizeof(tried));
            continue;
        }

        i = (uint32_t) target;
        test_check(target >= 0 && i < model->count && model->weights[i],
                   "target %d of %u", target, model->count);
        test_check(!(down[i / 64] >> i % 64 & 1), "%d is down", target);
        test_check(tried[i / 64] >> i % 64 & 1, "%d is not noted", target);

        for (i = 0; i < model->count; i++) {

            if (model->weights[i] && !(down[i / 64] >> i % 64 & 1)) {
                left -= !(tried[i / 64] >> i % 64 & 1);
            }
        }

        test_check(left == 1, "try %u of %d targets: one again (pick %lu)", n,
                   up, before >> 16);
        test_check(words == (model->count + 63) / 64, "%u words", words);
    }
}


/*
 * 16 picks may all be of one that was tried: who comes then is not always the
 * same, however many picks others take meanwhile.
 */

static void
check_heavy(void)
{
    int                      n, target, left;
    uint32_t                 i, others, counts[5];
    uint64_t                    size, tried;
    uint8_t                    *balancer;
    sluice_balancer_position_t  position;
    static const uint32_t       weights[] = { 60000, 1, 1, 1, 1 };

    balancer = build(weights, 5, 1000, &size);

    for (others = 0; others < 20; others++) {
        memset(&position, 0, sizeof(position));
        memset(counts, 0, sizeof(counts));

        for (n = 0; n < 4000; n++) {
            tried = 1;
            target = sluice_balancer_pick((const void *) balancer, &position,
                                          3, NULL, &tried);
            test_check(target > 0 && target < 5, "target %d", target);
            counts[target]++;

            for (i = 0; i < others; i++) {
                (void) sluice_balancer_pick((const void *) balancer, &position,
                                            3, NULL, NULL);
            }
        }

        for (left = 1; left < 5; left++) {
            test_check(counts[left] > 400, "%u beside: %u %u %u %u", others,
                       counts[1], counts[2], counts[3], counts[4]);
        }
    }

    free(balancer);
}


/* Targets that are down leave their picks to the others, in their order. */

static void
check_down(void)
{
    int                      target;
    uint32_t                 i, counts[5];
    uint64_t                    size, down;
    uint8_t                    *balancer;
    sluice_balancer_position_t  position;
    static const uint32_t       weights[] = { 4, 3, 2, 2, 0 };

    balancer = build(weights, 5, 100, &size);
    memset(&position, 0, sizeof(position));
    memset(counts, 0, sizeof(counts));
    down = 1 << 1;

    for (i = 0; i < 80; i++) {
        target = sluice_balancer_pick((const void *) balancer, &position, 0,
                                      &down, NULL);
        test_check(target >= 0, "none");
        counts[target]++;
    }

    test_check(counts[0] == 40 && counts[1] == 0 && counts[2] == 20
               && counts[3] == 20 && counts[4] == 0, "%u %u %u %u", counts[0],
               counts[2], counts[3], counts[4]);
    free(balancer);
}


/* Weights change under way: exact in each pick of either balancer. */

static void
check_change(void)
{
    int                      i, n, target;
    uint32_t                 weights[4], counts[4];
    uint64_t                    size, total;
    uint8_t                    *balancer;
    sluice_balancer_position_t  position;

    memset(&position, 0, sizeof(position));

    for (n = 0; n < 200; n++) {

        for (i = 0, total = 0; i < 4; i++) {
            weights[i] = 1 + (uint32_t) test_below(&state, 9);
            total += weights[i];
        }

        balancer = build(weights, 4, 100, &size);
        memset(counts, 0, sizeof(counts));

        for (i = (int) test_below(&state, 7); i > 0; i--) {
            (void) sluice_balancer_pick((const void *) balancer, &position, 3,
                                        NULL, NULL);
        }

        for (i = 0; i < (int) total; i++) {
            target = sluice_balancer_pick((const void *) balancer, &position,
                                          3, NULL, NULL);
            counts[target]++;
        }

        for (i = 0; i < 4; i++) {
            test_check(counts[i] == weights[i], "%u of %u", counts[i],
                       weights[i]);
        }

        free(balancer);
    }

    /* a successor begins anew, whatever stands there */

    weights[0] = weights[1] = weights[2] = 1;
    balancer = build(weights, 3, 100, &size);

    for (n = 0; n < 50; n++) {
        position.word = test_random(&state) << 16 | (n % 2 ? 8 : 65535);

        for (i = 0; i < 7; i++) {
            target = sluice_balancer_pick((const void *) balancer, &position,
                                          (9u << 16) + 9, NULL, NULL);
            test_check(target == i % 3, "pick %d: %d", i, target);
        }
    }

    /* the count's end is not the generation's */

    position.word = ~0xffffull | 9;
    (void) sluice_balancer_pick((const void *) balancer, &position, 9, NULL,
                                NULL);
    test_check(position.word == 9, "%lx", position.word);

    free(balancer);
}


static void
check_limits(void)
{
    uint8_t    memory[64] __attribute__((aligned(8)));
    uint32_t   weights[3] = { 1, 1, SLUICE_BALANCER_WEIGHT_MAX + 1 };
    uint64_t   size;
    uint32_t  *many;
    uint8_t   *balancer;

    test_check(sluice_balancer_build(weights, 3, 10, memory, 64, &size)
               == SLUICE_CORE_LARGE, "a weight");
    test_check(sluice_balancer_build(weights, 2, 0, memory, 64, &size)
               == SLUICE_CORE_LARGE, "no slots");
    test_check(sluice_balancer_build(weights, 2,
                                     SLUICE_BALANCER_PICKS_MAX + 1, memory,
                                     64, &size) == SLUICE_CORE_LARGE,
               "slots");
    test_check(sluice_balancer_build(weights,
                                     SLUICE_BALANCER_TARGETS_MAX + 1, 10,
                                     memory, 64, &size)
               == SLUICE_CORE_LARGE, "targets");
    test_check(sluice_balancer_build(weights, 2, 50, memory, 64, &size)
               == SLUICE_CORE_FULL, "too small");

    many = calloc(SLUICE_BALANCER_TARGETS_MAX, sizeof(uint32_t));

    for (size = 0; size < SLUICE_BALANCER_TARGETS_MAX; size++) {
        many[size] = size ? 1 : SLUICE_BALANCER_WEIGHT_MAX;
    }

    balancer = build(many, SLUICE_BALANCER_TARGETS_MAX,
                     SLUICE_BALANCER_PICKS_MAX, &size);
    test_check(sluice_balancer_length((const void *) balancer)
               > SLUICE_BALANCER_PICKS_MAX, "not the longest");
    free(balancer);
    free(many);
}


/* Words and bits that are not its own; memory ends where it does. */

static int
check_hostile(const uint8_t *balancer, uint64_t size)
{
    int                      passed;
    uint8_t                 *copy;
    uint64_t                 cut, n, bits[1024];
    sluice_balancer_position_t  position;

    cut = test_below(&state, 10) ? size : test_below(&state, size / 8) * 8;
    copy = make_memory(cut);
    memcpy(copy, balancer, cut);

    for (n = test_below(&state, 4); n > 0 && cut; n--) {

        if (test_below(&state, 2)) {
            copy[test_below(&state, test_below(&state, 2) ? cut
                            : cut < 24 ? cut : 24)] ^=
                (uint8_t) (1u << test_below(&state, 8));

        } else {
            memset(copy + test_below(&state, cut / 2) * 2,
                   test_below(&state, 2) ? 0xff : 0, 2);
        }
    }

    if (cut >= 4 && test_below(&state, 4)) {
        memcpy(copy, &cut, 4);
    }

    passed = sluice_balancer_check(copy, cut) == SLUICE_CORE_OK;

    if (passed) {
        n = sluice_balancer_words((const void *) copy);
        test_check(n <= 1024, "%lu words", n);
        memset(bits, 0, sizeof(bits));
        position.word = test_random(&state);

        for (n = 0; n < 40; n++) {
            (void) sluice_balancer_pick((const void *) copy, &position,
                                        (uint32_t) n / 20, NULL, bits);
        }
    }

    free(copy);

    return passed;
}


int
main(void)
{
    uint64_t         n, i, ops, size, hostile, passed;
    uint8_t         *balancer;
    static model_t   model;

    state = test_seed("balance");
    ops = test_env("OPS", 2000);

    check_heavy();
    check_down();
    check_change();
    check_limits();

    for (n = 0, hostile = 0, passed = 0; n < ops; n++) {
        model_make(&model);
        balancer = build(model.weights, model.count, model.slots, &size);
        compare_picks(&model, balancer);
        check_tries(&model, balancer);

        for (i = 0; i < 20; i++, hostile++) {
            passed += (uint64_t) check_hostile(balancer, size);
        }

        free(balancer);
    }

    printf("balance: %lu balancers; %lu hostile, %lu passed\n", ops, hostile,
           passed);
    test_check(passed && passed < hostile, "hostile ones of no use");

    return 0;
}
