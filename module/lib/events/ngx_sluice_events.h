
/*
 * One Lua virtual machine's end of the log: a slot, an eventfd in the event
 * loop, a queue of what the log had no space for.  Functions that begin with
 * sluice_events_ are called from Lua through FFI and take plain values, so
 * http and stream share them.
 */


#ifndef NGX_SLUICE_EVENTS_H_INCLUDED
#define NGX_SLUICE_EVENTS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "ngx_sluice_ring.h"


/* Machines: the http and the stream subsystem have one each. */
#define NGX_SLUICE_EVENTS_VMS      2

/* Contexts that wait: of each machine one for events, and a spare. */
#define NGX_SLUICE_EVENTS_WAITS    (2 * NGX_SLUICE_EVENTS_VMS)

/* Publishing returns this where nothing failed, but nothing is there yet. */
#define NGX_SLUICE_EVENTS_QUEUED   1

#define NGX_SLUICE_EVENTS_RETRY    10     /* ms */

/* Publications of a turn of the loop that wake at once; more are a burst. */
#define NGX_SLUICE_EVENTS_BURST    8
#define NGX_SLUICE_EVENTS_HOLD     500000 /* ns, the longest wake of a burst */

#define NGX_SLUICE_EVENTS_LINGER   100    /* ms, after a graceful exit began */
#define NGX_SLUICE_EVENTS_LOOK     50     /* ms, from then on */

/* FFI */

#define NGX_SLUICE_EVENTS_BATCH    64

/* The binding's counters in a slot. */
#define NGX_SLUICE_C_DELIVERED     (SLUICE_RING_C_USER + 0)
#define NGX_SLUICE_C_FAILED        (SLUICE_RING_C_USER + 1)
#define NGX_SLUICE_C_QUEUED        (SLUICE_RING_C_USER + 2)
#define NGX_SLUICE_C_REFUSED       (SLUICE_RING_C_USER + 3)
#define NGX_SLUICE_C_DROPPED       (SLUICE_RING_C_USER + 4)
#define NGX_SLUICE_C_WAITING       (SLUICE_RING_C_USER + 5)
#define NGX_SLUICE_C_WAITING_BYTES (SLUICE_RING_C_USER + 6)


typedef int (*ngx_sluice_post_pt)(void *semaphore, int n);
typedef int (*ngx_sluice_count_pt)(void *semaphore);

/* FFI end */


/* A publication on its way into the log. */

typedef struct {
    sluice_ring_message_t  message;    /* payload[1] is what is left */
    size_t                 left;
    u_char                 worker[2];  /* payload[0] of one for one worker */
} ngx_sluice_publication_t;


/* A publication that waits, with its names and payload behind it. */

typedef struct {
    ngx_queue_t               queue;
    ngx_sluice_publication_t  pub;
    size_t                    size;
    sluice_ring_frame_t       inherited;  /* where it is delivered again */
} ngx_sluice_waiting_t;


/* FFI */

typedef struct {
    /* counted in Lua, read here */
    double                 delivered;
    double                 failed;
    double                 dropped;
    uint32_t               generation; /* of this process */
    uint32_t               workers;    /* of that generation */
    int                    lost;       /* last frames; set in Lua */

    sluice_ring_frame_t    frames[NGX_SLUICE_EVENTS_BATCH];

    /* FFI: the rest is C's */
    sluice_ring_t          ring;
    int                    batch;      /* frames handed out */
    uint32_t               last_message;
    uint16_t               worker;     /* id of this process */
    int                    vm;         /* which machine */

    unsigned               open:1;
    unsigned               attached:1;
    unsigned               parked:1;   /* the dispatcher waits for a post */
    unsigned               looping:1;  /* posted events are run soon */
    unsigned               bursts:1;   /* the last turn had a burst */
    unsigned               owed:1;     /* a wake, to those who sleep */

    void                  *semaphore;  /* of the dispatcher */
    void                  *spare;      /* of the one that takes over */
    ngx_sluice_post_pt     post;
    ngx_sluice_count_pt    count_of;   /* below 0: so many wait for it */

    ngx_connection_t      *connection; /* of the eventfd */
    ngx_event_t            wakeup;     /* by this process itself */
    ngx_event_t            turn;       /* its end, where it has published */
    ngx_uint_t             published;  /* in it, or the last one that has */
    ngx_event_t            yielded;    /* runs if a callback does */
    ngx_event_t            retry;
    ngx_event_t            linger;
    ngx_msec_t             leaving;    /* since when */

    ngx_queue_t            waiting;
    ngx_uint_t             count;      /* in waiting */
    size_t                 bytes;
    ngx_uint_t             max_count;
    size_t                 max_bytes;
} sluice_events_t;


/* Who receives a publication, if not all do. */

typedef struct {
    const char            *key;        /* of a keyed one */
    size_t                 key_length;
    uint32_t               timeout_ms; /* the same */
    uint32_t               worker;     /* of one to a worker: its id */
    uint8_t                kind;       /* SLUICE_RING_WORKER or _UNIQUE */
    uint8_t                flags;      /* SLUICE_RING_REDELIVER */
} sluice_events_receiver_t;


/* ngx_sluice_events.c */

const char *sluice_events_word(int rc);
double sluice_events_clock(void);
sluice_events_t *sluice_events_open(int vm);
void sluice_events_limit(sluice_events_t *ev, double count, double bytes);
int sluice_events_attach(sluice_events_t *ev, void *semaphore, void *spare,
    ngx_sluice_post_pt post, ngx_sluice_count_pt count_of, double *missed);
void sluice_events_detach(sluice_events_t *ev);
int sluice_events_next(sluice_events_t *ev);
int sluice_events_intact(sluice_events_t *ev);
int sluice_events_rejoin(sluice_events_t *ev, double *missed);
int sluice_events_claim(sluice_events_t *ev, const sluice_ring_frame_t *frame);
void sluice_events_done(sluice_events_t *ev, const sluice_ring_frame_t *frame);
void sluice_events_pause(sluice_events_t *ev);
void sluice_events_stats(sluice_events_t *ev, sluice_ring_stats_t *stats);
int sluice_events_slot_stats(sluice_events_t *ev, uint32_t slot,
    sluice_ring_slot_stats_t *stats);

/* ngx_sluice_events_publish.c */

uint64_t sluice_events_name_hash(sluice_events_t *ev, const char *source,
    size_t source_length, const char *event, size_t event_length);
int sluice_events_publish(sluice_events_t *ev, uint64_t name_hash,
    const char *source, size_t source_length, const char *event,
    size_t event_length, const u_char *payload, size_t length);
int sluice_events_publish_to(sluice_events_t *ev,
    const sluice_events_receiver_t *to, const char *source,
    size_t source_length, const char *event, size_t event_length,
    const u_char *payload, size_t length);

/* ngx_sluice_events_context.c */

double sluice_events_enter(void *request, void *semaphore,
    ngx_sluice_post_pt post);
void sluice_events_leave(double serial);
int sluice_events_has_ended(double serial);
void sluice_events_leave_all(void);

/* FFI end */


/* Called when this worker begins to leave; NULL: by nobody. */
extern void  (*ngx_sluice_events_leaving)(ngx_cycle_t *cycle);


/* ngx_sluice_events.c */

ngx_int_t ngx_sluice_events_init_process(ngx_cycle_t *cycle);
void ngx_sluice_events_exit_process(ngx_cycle_t *cycle);

/* ngx_sluice_events_publish.c */

void ngx_sluice_events_flush(sluice_events_t *ev);
void ngx_sluice_events_redeliver(void *data, const sluice_ring_frame_t *frame);

/* ngx_sluice_events_wake.c */

int ngx_sluice_events_append(sluice_events_t *ev,
    const sluice_ring_message_t *m);
void ngx_sluice_events_turn_handler(ngx_event_t *e);
void ngx_sluice_events_post_soon(ngx_event_t *e);

/* ngx_sluice_events_loop.c */

void ngx_sluice_events_prepare(sluice_events_t *ev);
void ngx_sluice_events_forget(sluice_events_t *ev);
ngx_int_t ngx_sluice_events_connect(sluice_events_t *ev);
void ngx_sluice_events_disconnect(sluice_events_t *ev);


#endif /* NGX_SLUICE_EVENTS_H_INCLUDED */
