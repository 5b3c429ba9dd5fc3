
/*
 * The moment in which a reader goes to sleep, forced.  A processor may let the
 * load that follows a store overtake it, unless there is a barrier in between;
 * seldom enough that threads.c can miss it.  Here the reader's stores wait in
 * a buffer as a processor's do, and a writer publishes right behind the load.
 * Either the reader has seen the event, or the writer has seen the sleeper.
 */


#include "support.h"

#include <string.h>


/* Stores of 32 bits that nobody else sees yet, as many as one verb makes. */
#define SLEEP_STORES  8


static void sleep_store(_Atomic uint32_t *word, uint32_t value);
static void sleep_drain(void);
static void sleep_loaded(const void *word);


/*
 * What ring_read.c stores with less than sequential consistency waits, what it
 * stores with it is a barrier.
 */

#undef atomic_store
#undef atomic_store_explicit
#undef atomic_load

#define atomic_store_explicit(p, v, order)                                    \
    _Generic((p),                                                             \
        _Atomic uint32_t *: sleep_store((_Atomic uint32_t *) (p),             \
                                        (uint32_t) (v)),                      \
        default: __atomic_store_n((uint64_t *) (p), (uint64_t) (v),           \
                                  __ATOMIC_SEQ_CST))

#define atomic_store(p, v)                                                    \
    do {                                                                      \
        atomic_store_explicit(p, v, memory_order_relaxed);                    \
        sleep_drain();                                                        \
    } while (0)

#define atomic_load(p)                                                        \
    ({                                                                        \
        __typeof__(__atomic_load_n((uint64_t *) (p), __ATOMIC_SEQ_CST)) v_;   \
        v_ = __atomic_load_n((uint64_t *) (p), __ATOMIC_SEQ_CST);             \
        sleep_loaded(p);                                                      \
        v_;                                                                   \
    })

#include "ring_read.c"


static struct {
    _Atomic uint32_t  *word;
    uint32_t           value;
} sleep_stores[SLEEP_STORES];

static int            stored, woken, armed;
static sluice_ring_t  reader, writer;


static void
sleep_store(_Atomic uint32_t *word, uint32_t value)
{
    test_check(stored < SLEEP_STORES, "%d stores", stored);

    sleep_stores[stored].word = word;
    sleep_stores[stored].value = value;
    stored++;
}


static void
sleep_drain(void)
{
    int  i;

    for (i = 0; i < stored; i++) {
        __atomic_store_n((uint32_t *) sleep_stores[i].word,
                         sleep_stores[i].value, __ATOMIC_SEQ_CST);
    }

    stored = 0;
}


static void
sleep_publish(void)
{
    sluice_ring_message_t  m;

    memset(&m, 0, sizeof(m));
    m.source = "sleep";
    m.source_length = 5;
    m.payload[0] = "x";
    m.length[0] = 1;

    test_check(sluice_ring_publish(&writer, &m) == SLUICE_OK, "publish");
}


/* The reader has loaded something; what it stored before may be seen later. */

static void
sleep_loaded(const void *word)
{
    if (armed && word == &reader.control->tail) {
        armed = 0;
        sleep_publish();
    }
}


static void
sleep_wake(void *data, uint32_t slot)
{
    (void) data;

    woken += (slot == reader.index);
}


static int
sleep_read(void)
{
    int                  n;
    sluice_ring_frame_t  frames[4];

    n = sluice_ring_next_batch(&reader, frames, 4);
    sleep_drain();

    test_check(n >= 0, "read: %s", sluice_ring_word(n));
    test_check(sluice_ring_advance(&reader, NULL) == SLUICE_OK, "advance");
    sleep_drain();

    return n;
}


int
main(void)
{
    int       rc;
    uint32_t  generation;
    uint64_t  missed;

    test_check(sluice_ring_create(&reader, 1u << 16, 4, 10000) == SLUICE_OK,
               "create");
    test_check(sluice_ring_generation(&reader, 1, &generation) == SLUICE_OK,
               "generation");
    writer = reader;

    test_check(sluice_ring_attach(&reader, generation, 0, &missed)
               == SLUICE_OK, "attach");
    sluice_ring_set_wake(&writer, sleep_wake, NULL);

    /* behind its look: the writer sees that it sleeps */

    armed = 1;
    rc = sluice_ring_sleep(&reader);
    sleep_drain();

    test_check(armed == 0, "it has not looked at the end of the log");
    test_check(rc == SLUICE_OK || woken == 1,
               "it sleeps on an event, and nobody has woken it");
    test_check(sleep_read() == 1, "the event");

    /* before its look: it does not sleep */

    woken = 0;
    sleep_publish();
    rc = sluice_ring_sleep(&reader);
    sleep_drain();

    test_check(rc == SLUICE_OK || woken == 1,
               "it sleeps though it has not read all");
    test_check(sleep_read() == 1, "the event");

    printf("sleep: no wake is lost\n");

    return 0;
}
