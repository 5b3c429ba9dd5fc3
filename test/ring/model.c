
/*
 * Long on purpose: one experiment with all that judges it.
 *
 * The log against a slow, obvious model: an array of all events, a list of
 * keys, a record per process.  After each of OPS random steps both must agree.
 *
 * A process is a thread here: it takes its slot, waits, and either gives it
 * back or just ends, which the kernel treats like a death.  The clock is ours.
 *
 * Over 500 lines: a model is believed only if it is read in one go.
 */


#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define MODEL_ACTORS   7
#define MODEL_SIZE     (64u << 10)
#define MODEL_STALL    1000
#define MODEL_WORKERS  4
#define MODEL_BATCH    24
#define MODEL_LONGEST  12000
#define MODEL_HEIRLOOMS  1000


typedef struct {
    uint64_t  start;
    uint64_t  end;
    uint64_t  number;
    uint64_t  key;
    uint64_t  sent_ms;
    uint32_t  length;
    uint16_t  sender;
    uint16_t  worker;
    uint8_t   kind;
    uint8_t   flags;
    uint8_t   names;
    uint8_t   done;
    int       owner;        /* slot, or -1 */
} model_event_t;


typedef struct {
    uint64_t  key;
    uint64_t  expiry;
} model_key_t;


typedef struct {
    uint32_t  number;
    uint64_t  start;        /* count of events before it */
    uint64_t  since;
    unsigned  attached;
    unsigned  workers;
    int       open;
} model_gate_t;


/* A slot; it stays while its process is dead and not reaped. */

typedef struct {
    int       state;
    int       alive;
    int       asleep;
    int       waiting;
    uint64_t  used;         /* events passed */
    uint64_t  read;
    uint64_t  handed;
    uint64_t  stuck_at;
    uint64_t  stuck_since;
    uint16_t  worker;
} model_slot_t;


typedef enum { ACTOR_REST, ACTOR_ATTACH, ACTOR_DETACH, ACTOR_END } actor_do_e;


typedef struct {
    sluice_ring_t        ring;
    pthread_t            thread;
    pthread_mutex_t      lock;
    pthread_cond_t       changed;
    actor_do_e           todo;
    int                  running;
    int                  rc;
    uint32_t             generation;
    uint16_t             worker;
    uint64_t             missed;
    uint64_t             mark;          /* events before it, if ring.marked */
    uint64_t             mark_missed;
    sluice_ring_frame_t  claimed;       /* one callback under way */
    int                  busy;
    sluice_ring_frame_t  heirlooms[MODEL_HEIRLOOMS];
    int                  inherited;
} actor_t;


static actor_t         actors[MODEL_ACTORS];
static model_slot_t    slots[TEST_SLOTS];
static model_gate_t    gates[SLUICE_RING_GATES];
static model_event_t  *events;
static model_key_t    *keys;
static uint64_t        event_count, key_count, capacity, now_ms, state;
static uint64_t        numbers, again_wanted, again_got, again_sum;
static uint64_t        crowded_to;
static uint32_t        generation;
static int             woken[TEST_SLOTS];
static sluice_ring_t   master;
static uint8_t         payload[MODEL_LONGEST + TEST_HEAD];
static uint64_t        done[17];

static struct {
    uint64_t  publish, longest, keys, timeout, hangs;
} mix;


static const struct {
    const char  *source;
    const char  *event;
} names[] = {
    { "", "" }, { "a", "" }, { "", "b" }, { "config", "change" },
    { "balancer", "targets.update" }, { "cache", "purge-by-a-longer-name" },
};


static uint64_t
model_clock(void)
{
    return now_ms;
}


static void
model_wake(void *data, uint32_t slot)
{
    (void) data;
    woken[slot]++;
}


static uint64_t
model_position(uint64_t count)
{
    return count ? events[count - 1].end : 0;
}


/* What a dead receiver leaves; order does not matter, so a sum will do. */

static void
model_again(void *data, const sluice_ring_frame_t *frame)
{
    actor_t      *a;
    test_head_t   head;

    a = data;

    test_check(test_whole(frame->payload, frame->length, &head),
               "torn redelivery");
    test_check(a->inherited < MODEL_HEIRLOOMS, "too many");

    a->heirlooms[a->inherited++] = *frame;
    again_got++;
    again_sum += frame->seq * frame->seq;
}


/* the threads */

static void *
actor_main(void *data)
{
    actor_t     *a;
    actor_do_e   todo;

    a = data;

    pthread_mutex_lock(&a->lock);

    do {
        while (a->todo == ACTOR_REST) {
            pthread_cond_wait(&a->changed, &a->lock);
        }

        todo = a->todo;

        if (todo == ACTOR_ATTACH) {
            a->rc = sluice_ring_attach(&a->ring, a->generation, a->worker,
                                       &a->missed);

        } else if (todo == ACTOR_DETACH) {
            sluice_ring_detach(&a->ring);
        }

        a->todo = ACTOR_REST;
        pthread_cond_broadcast(&a->changed);

    } while (todo != ACTOR_END);

    pthread_mutex_unlock(&a->lock);

    return NULL;
}


static void
actor_do(actor_t *a, actor_do_e todo)
{
    if (!a->running) {
        a->running = 1;
        test_check(pthread_create(&a->thread, NULL, actor_main, a) == 0,
                   "thread");
    }

    pthread_mutex_lock(&a->lock);

    a->todo = todo;
    pthread_cond_broadcast(&a->changed);

    while (a->todo != ACTOR_REST) {
        pthread_cond_wait(&a->changed, &a->lock);
    }

    pthread_mutex_unlock(&a->lock);

    if (todo == ACTOR_END) {
        pthread_join(a->thread, NULL);
        a->running = 0;
    }
}


/* the model's half of each verb */

static uint16_t
model_worker(void)
{
    uint64_t  id = test_below(&state, MODEL_WORKERS + 1);

    return id == MODEL_WORKERS ? SLUICE_RING_AGENT : (uint16_t) id;
}


/* The privileged agent is no worker: a generation is complete without it. */

static int
model_gate_complete(const model_gate_t *g)
{
    unsigned  all = (1u << g->workers) - 1;

    return (g->attached & all) == all;
}


/* The lowest event that must be kept; detaches who has stalled. */

static uint64_t
model_room(uint64_t floor)
{
    int            i;
    uint64_t       least, position;
    model_slot_t  *s;
    model_gate_t  *g;

    least = event_count;

    for (i = 0; i < TEST_SLOTS; i++) {
        s = &slots[i];

        if (s->state != SLUICE_RING_ATTACHED) {
            continue;
        }

        position = model_position(s->used);

        if (position < floor) {
            if (s->stuck_at != position) {
                s->stuck_at = position;
                s->stuck_since = now_ms;

            } else if (now_ms - s->stuck_since >= MODEL_STALL) {
                s->state = SLUICE_RING_DETACHED;
                continue;
            }
        }

        least = s->used < least ? s->used : least;
    }

    for (i = 0; i < SLUICE_RING_GATES; i++) {
        g = &gates[i];

        if (!g->open) {
            continue;
        }

        if (floor && model_gate_complete(g)) {
            g->open = 0;
            continue;
        }

        if (model_gate_complete(g)) {
            continue;
        }

        if (model_position(g->start) < floor) {
            if (g->since == 0) {
                g->since = now_ms;

            } else if (now_ms - g->since >= MODEL_STALL) {
                g->open = 0;
                continue;
            }
        }

        least = g->start < least ? g->start : least;
    }

    return least;
}


/* Does the log still hold this event, for whom the slot's cursor keeps it? */

static int
model_holds(const model_event_t *e, const model_slot_t *s)
{
    uint64_t  tail, limit;

    tail = model_position(event_count);
    limit = master.limit;

    if (s->state == SLUICE_RING_ATTACHED
        && e->start >= model_position(s->used))
    {
        return 1;
    }

    return e->start + MODEL_SIZE >= tail + limit;
}


/* The successor, if it has a slot, owns what those leave that exited. */

static void
model_reap(int successor)
{
    int             i;
    uint64_t        k;
    model_slot_t   *s;
    model_event_t  *e;

    again_wanted = 0;

    for (i = 0; i < TEST_SLOTS; i++) {
        s = &slots[i];

        if (s->state == SLUICE_RING_FREE || s->alive) {
            continue;
        }

        for (k = 0; k < event_count; k++) {
            e = &events[k];

            if (e->kind != SLUICE_RING_UNIQUE || e->done
                || !(e->flags & SLUICE_RING_REDELIVER)
                || !(e->owner == i
                     || (e->owner == -1 && k >= s->used
                         && s->state == SLUICE_RING_ATTACHED)))
            {
                continue;
            }

            if (model_holds(e, s)) {
                e->owner = successor;
                again_wanted++;
                again_sum -= (k + 1) * (k + 1);

            } else {
                e->done = 1;
            }
        }

        memset(s, 0, sizeof(*s));
        done[0]++;
    }
}


static void
model_check_again(void)
{
    test_check(again_got == again_wanted && again_sum == 0,
               "redelivered %lu, not %lu", again_got, again_wanted);
    done[1] += again_got;
    again_got = 0;
    again_wanted = 0;
}


static int
model_key_repeats(uint64_t key)
{
    uint64_t  i;

    for (i = 0; i < key_count; ) {
        if (keys[i].expiry <= now_ms) {
            keys[i] = keys[--key_count];
            continue;
        }

        if (keys[i].key == key) {
            return 1;
        }

        i++;
    }

    return 0;
}


static int
model_space(uint64_t need)
{
    uint64_t  tail, floor;

    tail = model_position(event_count);

    if (tail + need <= MODEL_SIZE) {
        return 1;
    }

    floor = tail + need - MODEL_SIZE;

    /* nobody in the way: the log does not look, and closes no gate */

    return model_position(model_room(0)) >= floor
           || model_position(model_room(floor)) >= floor;
}


static void
model_append(actor_t *a, const sluice_ring_message_t *m, int name)
{
    model_event_t  *e;

    if (event_count == capacity) {
        capacity = capacity ? capacity * 2 : 1024;
        events = realloc(events, capacity * sizeof(*events));
    }

    e = &events[event_count];
    memset(e, 0, sizeof(*e));

    e->start = model_position(event_count);
    e->end = e->start + sluice_ring_frame_size(m);
    e->number = numbers;
    e->key = m->key;
    e->sent_ms = now_ms;
    e->length = m->length[0] + m->length[1];
    e->sender = (uint16_t) a->ring.index;
    e->worker = m->worker;
    e->kind = m->kind;
    e->flags = m->flags;
    e->names = (uint8_t) name;
    e->owner = -1;

    event_count++;
}


/* steps */

/* All sleepers with something to read have been woken, and else who waits. */

static void
step_wakes(int all)
{
    int  i;

    for (i = 0; i < TEST_SLOTS; i++) {

        if (woken[i]) {
            test_check(slots[i].asleep || slots[i].waiting || !slots[i].alive,
                       "slot %d woken for nothing", i);
        }

        slots[i].waiting = (master.control->waiting[i / 64] >> (i % 64)) & 1;

        if (all && slots[i].asleep && slots[i].used != event_count) {
            test_check(woken[i] > 0, "slot %d left asleep", i);
            slots[i].asleep = 0;
        }

        woken[i] = 0;
    }
}


static void
step_publish(actor_t *a)
{
    int                    rc, full, want, name;
    uint32_t               length, cut;
    uint64_t               need;
    sluice_ring_message_t  m;

    memset(&m, 0, sizeof(m));

    name = (int) test_below(&state, sizeof(names) / sizeof(names[0]));
    length = TEST_HEAD + (uint32_t) test_below(&state, mix.longest);
    cut = test_below(&state, 2) ? length : (uint32_t) test_below(&state,
                                                                 length);

    test_fill(payload, length, a->ring.index, ++numbers);

    m.payload[0] = payload;
    m.length[0] = cut;
    m.payload[1] = payload + cut;
    m.length[1] = length - cut;
    m.source = names[name].source;
    m.event = names[name].event;
    m.source_length = (uint16_t) strlen(m.source);
    m.event_length = (uint16_t) strlen(m.event);
    m.worker = model_worker();
    m.kind = (uint8_t) test_below(&state, 3);

    if (m.kind == SLUICE_RING_UNIQUE) {
        m.key = test_below(&state, 8) ? 1 + test_below(&state, mix.keys) : 0;
        m.key *= 0x9e3779b97f4a7c15u;
        m.timeout_ms = (uint32_t) test_below(&state, mix.timeout);
        m.flags = test_below(&state, 2) ? SLUICE_RING_REDELIVER : 0;
    }

    need = sluice_ring_frame_size(&m);
    rc = sluice_ring_publish(&a->ring, &m);

    if (m.kind == SLUICE_RING_UNIQUE) {
        /* where keys are crowded their entries count, and marks do not */
        crowded_to = atomic_load(&master.control->gate);
    }

    if (need > master.limit) {
        test_check(rc == SLUICE_LARGE, "large: %d", rc);
        done[2]++;
        return;
    }

    full = 0;
    want = SLUICE_OK;

    if (!model_space(need)) {
        slots[a->ring.index].waiting = 1;
        model_reap((int) a->ring.index);
        full = 1;

        if (!model_space(need)) {
            want = SLUICE_FULL;
        }
    }

    model_check_again();

    if (want == SLUICE_OK && m.key && model_key_repeats(m.key)) {
        want = SLUICE_REPEAT;
    }

    if (rc == SLUICE_CROWDED) {
        /* 256 entries: not before a good part of them is in use */
        test_check(want == SLUICE_OK && m.kind == SLUICE_RING_UNIQUE,
                   "crowded, not %d", want);
        step_wakes(full);
        done[3]++;
        return;
    }

    test_check(rc == want, "publish: %s, not %s", sluice_ring_word(rc),
               sluice_ring_word(want));

    if (rc == SLUICE_OK) {
        model_append(a, &m, name);

        if (m.key) {
            keys[key_count].key = m.key;
            keys[key_count++].expiry = now_ms + m.timeout_ms;
        }
    }

    step_wakes(full || rc == SLUICE_OK);

    done[rc == SLUICE_OK ? 4 : rc == SLUICE_FULL ? 5 : 6]++;
}


static void
step_frame(const sluice_ring_frame_t *f, uint64_t k)
{
    test_head_t           head;
    const model_event_t  *e;

    e = &events[k];

    test_check(f->seq == k + 1 && f->end == e->end, "seq %lu, not %lu",
               f->seq, k + 1);
    test_check(f->kind == e->kind && f->flags == e->flags
               && f->sender == e->sender && f->worker == e->worker
               && f->sent_ms == e->sent_ms, "header of %lu", f->seq);
    test_check(f->length == e->length
               && test_whole(f->payload, f->length, &head)
               && head.number == e->number, "payload of %lu", f->seq);
    test_check(f->source_length == strlen(names[e->names].source)
               && f->event_length == strlen(names[e->names].event)
               && memcmp(f->source, names[e->names].source, f->source_length)
                  == 0
               && memcmp(f->event, names[e->names].event, f->event_length)
                  == 0,
               "names of %lu", f->seq);
    test_check(f->name_hash
               == sluice_ring_name_hash(&master, f->source, f->source_length,
                                        f->event, f->event_length),
               "name hash of %lu", f->seq);
}


static void
step_claim(actor_t *a, const sluice_ring_frame_t *f, uint64_t k)
{
    int             rc;
    model_event_t  *e;

    e = &events[k];

    if (f->kind != SLUICE_RING_UNIQUE || a->busy) {
        return;
    }

    rc = sluice_ring_claim(&a->ring, f);

    test_check((rc == SLUICE_OK) == (e->owner == -1 && !e->done),
               "claim of %lu: %d", f->seq, rc);

    if (rc == SLUICE_OK) {
        e->owner = (int) a->ring.index;
        a->claimed = *f;
        a->busy = 1;
        done[7]++;
    }
}


static void
step_rejoin(actor_t *a, model_slot_t *s)
{
    uint64_t  missed;

    test_check(sluice_ring_rejoin(&a->ring, &missed) == SLUICE_OK, "rejoin");
    test_check(missed == event_count - s->used, "missed %lu, not %lu", missed,
               event_count - s->used);

    s->state = SLUICE_RING_ATTACHED;
    s->used = s->read = s->handed = event_count;
    s->stuck_at = UINT64_MAX;
    step_wakes(0);
    done[8]++;
}


static void
step_read(actor_t *a)
{
    int                   i, n, rc, last;
    uint64_t              k;
    model_slot_t         *s;
    sluice_ring_frame_t   frames[MODEL_BATCH];

    s = &slots[a->ring.index];
    s->asleep = 0;
    last = -1;

    n = sluice_ring_next_batch(&a->ring, frames,
                               1 + (int) test_below(&state, MODEL_BATCH));

    if (s->state == SLUICE_RING_DETACHED) {
        test_check(n == SLUICE_OVERRUN, "detached, and read %d", n);
        step_rejoin(a, s);
        return;
    }

    test_check(n >= 0, "read: %s", sluice_ring_word(n));

    for (i = 0, k = s->read; i < n; k++) {
        test_check(k < event_count, "reads more than there is");

        if (events[k].kind == SLUICE_RING_WORKER
            && events[k].worker != a->worker)
        {
            continue;
        }

        step_frame(&frames[i], k);
        test_check(memcmp(frames[0].payload + frames[i].offset,
                          frames[i].payload, frames[i].length)
                   == 0, "offset of %lu", frames[i].seq);
        step_claim(a, &frames[i], k);
        i++;
        s->handed = s->read = k + 1;
    }

    if (n == 0) {
        test_check(a->ring.read_seq == event_count, "stops at %lu of %lu",
                   a->ring.read_seq, event_count);

        if (s->handed <= s->used) {
            s->used = event_count;
        }

        s->read = event_count;
        step_wakes(0);
        return;
    }

    /* sometimes only a part of it, or nothing yet */

    switch (test_below(&state, 4)) {

    case 0:
        return;

    case 1:
        last = (int) test_below(&state, (uint64_t) n);
        break;
    }

    rc = sluice_ring_advance(&a->ring, last == -1 ? NULL : &frames[last]);
    test_check(rc == SLUICE_OK, "advance: %d", rc);

    s->used = last == -1 || last == n - 1 ? a->ring.read_seq
                                          : frames[last].seq;
    s->read = a->ring.read_seq;
    test_check(s->used == atomic_load(&a->ring.own->seq), "seq published");
    step_wakes(0);
    done[9]++;
}


static void
step_sleep(actor_t *a)
{
    int            i, rc, freed;
    model_slot_t  *s;

    s = &slots[a->ring.index];
    freed = (a->ring.offered != a->ring.used);
    rc = sluice_ring_sleep(&a->ring);

    if (s->state == SLUICE_RING_DETACHED) {
        test_check(rc == SLUICE_OVERRUN, "detached, and sleeps");
        return;
    }

    test_check(rc == (a->ring.read_seq == event_count ? SLUICE_NONE
                                                      : SLUICE_OK),
               "sleep: %d", rc);

    if (rc == SLUICE_NONE) {
        s->asleep = 1;
        done[10]++;

        for (i = 0; freed && i < TEST_SLOTS / 64; i++) {
            test_check(master.control->waiting[i] == 0,
                       "made room, asleep, and somebody waits for it");
        }

    } else {
        s->asleep = 0;
    }

    step_wakes(0);
}


/* That of a process whose worker id it still waits for, or NULL. */

static model_gate_t *
model_gate(const actor_t *a)
{
    unsigned       bit;
    model_gate_t  *g;

    bit = 1u << (a->worker == SLUICE_RING_AGENT ? MODEL_WORKERS : a->worker);

    for (g = gates; g < gates + SLUICE_RING_GATES; g++) {
        if (a->generation && g->number == a->generation
            && !(g->attached & bit))
        {
            return g;
        }
    }

    return NULL;
}


/* The first of a worker id of a generation begins where that began. */

static void
model_look(const actor_t *a, uint64_t *start, uint64_t *missed)
{
    model_gate_t  *g;

    g = model_gate(a);

    if (g) {
        *missed = g->open ? 0 : *start - g->start;
        *start = g->open ? g->start : *start;
    }
}


static void
model_enter(const actor_t *a)
{
    model_gate_t  *g;

    g = model_gate(a);

    if (g) {
        g->attached |= 1u << (a->worker == SLUICE_RING_AGENT ? MODEL_WORKERS
                                                             : a->worker);
        done[11]++;
    }
}


/* A process that may attach later, or never. */

static void
step_mark(actor_t *a)
{
    if (a->ring.marked) {
        a->ring.marked = 0;
        return;
    }

    a->worker = model_worker();
    a->generation = generation - (uint32_t) test_below(&state, 3);
    a->mark = event_count;
    a->mark_missed = 0;

    test_check(sluice_ring_mark(&a->ring, a->generation, a->worker)
               == SLUICE_OK, "mark");

    model_look(a, &a->mark, &a->mark_missed);
    done[14]++;
}


static void
step_pass(actor_t *a)
{
    if (a->ring.marked) {
        test_check(sluice_ring_pass(&a->ring, a->generation, a->worker)
                   == SLUICE_OK, "pass");

        model_enter(a);
        done[16]++;
    }
}


/*
 * What is behind a mark is there for sure while the log has not come round to
 * it but for its last eighth and a frame.
 */

static void
model_marked(actor_t *a, uint64_t *start, uint64_t *missed)
{
    uint64_t       behind;
    model_gate_t  *g;

    g = model_gate(a);
    *missed = a->mark_missed;
    a->ring.marked = 0;

    behind = model_position(event_count) - model_position(a->mark);

    if (a->ring.used_seq == a->mark) {
        test_check(behind <= MODEL_SIZE, "a mark %lu bytes behind is believed",
                   behind);
        *start = a->mark;
        return;
    }

    test_check(g == NULL || !g->open, "the log was not kept for a mark");

    test_check(behind + a->ring.limit > MODEL_SIZE / 8 * 7
               || crowded_to > model_position(a->mark),
               "a mark is lost %lu bytes behind", behind);

    *missed += event_count - a->mark;
    done[15]++;
}


static void
step_attach(actor_t *a)
{
    int            i;
    uint64_t       start, missed;
    model_slot_t  *s;

    if (!a->ring.marked) {
        a->worker = model_worker();
        a->generation = generation - (uint32_t) test_below(&state, 3);
    }

    a->busy = 0;
    a->inherited = 0;

    actor_do(a, ACTOR_ATTACH);
    test_check(a->rc == SLUICE_OK, "attach: %d", a->rc);

    for (i = 0; slots[i].state != SLUICE_RING_FREE; i++) { /* void */ }

    model_reap(i);
    model_check_again();

    test_check(a->ring.index == (uint32_t) i, "slot %u, not %d",
               a->ring.index, i);

    start = event_count;
    missed = 0;

    if (a->ring.marked) {
        model_marked(a, &start, &missed);

    } else {
        model_look(a, &start, &missed);
    }

    model_enter(a);

    test_check(a->missed == missed, "attach missed %lu, not %lu", a->missed,
               missed);

    s = &slots[i];
    memset(s, 0, sizeof(*s));
    s->waiting = 1;     /* the one who had this slot before may have been */
    s->state = SLUICE_RING_ATTACHED;
    s->alive = 1;
    s->used = s->read = s->handed = start;
    s->stuck_at = UINT64_MAX;
    s->worker = a->worker;

    step_wakes(1);
}


static void
step_leave(actor_t *a)
{
    model_slot_t  *s;

    s = &slots[a->ring.index];

    if (test_below(&state, 2)) {
        /* the slot of one with a callback under way looks like a dead one */

        if (a->inherited
            || (a->busy && (a->claimed.flags & SLUICE_RING_REDELIVER)))
        {
            s->alive = 0;
            s->asleep = 0;

        } else {
            memset(s, 0, sizeof(*s));
        }

        actor_do(a, ACTOR_DETACH);
        step_wakes(0);
        return;
    }

    s->alive = 0;
    s->asleep = 0;    /* woken or not: who cares */
    actor_do(a, ACTOR_END);

    a->ring.own = NULL;
    a->ring.index = SLUICE_RING_NOBODY;
    done[12]++;
}


static void
step_generation(void)
{
    int            i;
    model_gate_t  *g;

    test_check(sluice_ring_generation(&master, MODEL_WORKERS, &generation)
               == SLUICE_OK, "generation");

    g = &gates[0];

    for (i = 1; i < SLUICE_RING_GATES; i++) {
        if (gates[i].number < g->number) {
            g = &gates[i];
        }
    }

    memset(g, 0, sizeof(*g));
    g->number = generation;
    g->start = event_count;
    g->workers = MODEL_WORKERS;
    g->open = 1;
    done[13]++;
}


static void
step_done(actor_t *a)
{
    if (a->busy) {
        sluice_ring_done(&a->ring, &a->claimed);
        events[a->claimed.seq - 1].done = 1;
        a->busy = 0;
    }

    while (a->inherited) {
        sluice_ring_done(&a->ring, &a->heirlooms[--a->inherited]);
        events[a->heirlooms[a->inherited].seq - 1].done = 1;
    }
}


/*
 * The mix changes now and then: more or less reading, long or short frames,
 * many keys, one process that hangs.
 */

static void
step_mix(void)
{
    mix.publish = 100 + test_below(&state, 500);
    mix.longest = test_below(&state, 3) ? 400 : MODEL_LONGEST;
    mix.keys = test_below(&state, 3) ? 300 : 100000;
    mix.timeout = test_below(&state, 3) ? 500 : 20000;
    mix.hangs = test_below(&state, 2) ? test_below(&state, MODEL_ACTORS)
                                      : MODEL_ACTORS;
}


static void
step(void)
{
    actor_t   *a;
    uint64_t   dice, who;

    if (test_below(&state, 1000) == 0 || mix.longest == 0) {
        step_mix();
    }

    who = test_below(&state, MODEL_ACTORS);
    a = &actors[who];

    if (a->ring.own == NULL) {
        dice = test_below(&state, 30);

        if (dice < (a->ring.marked ? 1 : 5)) {
            step_attach(a);

        } else if (dice < (a->ring.marked ? 2 : 10)) {
            step_mark(a);

        } else if (dice < 14) {
            step_pass(a);
        }

        return;
    }

    dice = test_below(&state, 1000);

    if (dice < mix.publish) {
        step_publish(a);

    } else if (dice < 800) {
        if (who != mix.hangs) {
            step_read(a);
        }

    } else if (dice < 880) {
        step_sleep(a);

    } else if (dice < 950) {
        step_done(a);

    } else if (dice < 954) {
        step_leave(a);

    } else if (dice < 955) {
        if (test_below(&state, 4) == 0) {
            step_generation();
        }

    } else {
        now_ms += test_below(&state, test_below(&state, 8) ? 30 : 400);
    }
}


static void
model_compare(void)
{
    sluice_ring_stats_t  stats;

    sluice_ring_stats(&master, &stats);

    test_check(stats.seq == event_count
               && stats.tail == model_position(event_count),
               "log at %lu, %lu, model at %lu, %lu", stats.seq, stats.tail,
               event_count, model_position(event_count));
}


int
main(void)
{
    int       i;
    uint64_t  k, ops;

    state = test_seed("model");
    ops = test_env("OPS", 200000);
    now_ms = 1000000;
    keys = calloc(ops, sizeof(*keys));

    test_check(sluice_ring_create(&master, MODEL_SIZE, TEST_SLOTS, MODEL_STALL)
               == SLUICE_OK, "create");
    sluice_ring_set_clock(&master, model_clock);
    test_check(master.size == MODEL_SIZE, "size %lu", master.size);

    for (i = 0; i < MODEL_ACTORS; i++) {
        pthread_mutex_init(&actors[i].lock, NULL);
        pthread_cond_init(&actors[i].changed, NULL);

        test_check(sluice_ring_open(&actors[i].ring, master.fd) == SLUICE_OK,
                   "open");
        sluice_ring_set_clock(&actors[i].ring, model_clock);
        sluice_ring_set_wake(&actors[i].ring, model_wake, NULL);
        sluice_ring_set_redeliver(&actors[i].ring, model_again, &actors[i]);
    }

    for (k = 0; k < ops; k++) {
        step();
        model_compare();
    }

    printf("model: %lu steps: %lu published, %lu full, %lu repeats, "
           "%lu crowded, %lu large,\n"
           "    %lu advances, %lu sleeps, %lu claims, %lu overruns, "
           "%lu generations, %lu first attaches,\n"
           "    %lu deaths, %lu reaped, %lu redelivered, %lu marks, %lu "
           "passed, %lu lapped\n",
           ops, done[4], done[5], done[6], done[3], done[2], done[9],
           done[10], done[7], done[8], done[13], done[11], done[12], done[0],
           done[1], done[14], done[16], done[15]);

    return 0;
}
