
/*
 * Publishing: into the log at once, in pieces where a payload is larger than a
 * frame, or by way of a bounded queue where the log has no space.  Behind the
 * first that waits everything waits, so that one publisher's order is kept.
 */


#include "ngx_sluice_events.h"


static int ngx_sluice_events_send(sluice_events_t *ev,
    ngx_sluice_publication_t *pub);
static int ngx_sluice_events_put(sluice_events_t *ev,
    ngx_sluice_publication_t *pub);
static int ngx_sluice_events_wait(sluice_events_t *ev,
    ngx_sluice_publication_t *pub);
static void ngx_sluice_events_count(sluice_events_t *ev, int counter,
    uint64_t n);


uint64_t
sluice_events_name_hash(sluice_events_t *ev, const char *source,
    size_t source_length, const char *event, size_t event_length)
{
    return sluice_ring_name_hash(&ev->ring, source, source_length, event,
                                 event_length);
}


int
sluice_events_publish(sluice_events_t *ev, uint64_t name_hash,
    const char *source, size_t source_length, const char *event,
    size_t event_length, const u_char *payload, size_t length)
{
    ngx_sluice_publication_t  pub;

    ngx_memzero(&pub, sizeof(ngx_sluice_publication_t));

    pub.message.name_hash = name_hash;
    pub.message.source = source;
    pub.message.source_length = (uint16_t) source_length;
    pub.message.event = event;
    pub.message.event_length = (uint16_t) event_length;
    pub.message.worker = ev->worker;
    pub.message.payload[1] = payload;
    pub.left = length;

    return ngx_sluice_events_send(ev, &pub);
}


int
sluice_events_publish_to(sluice_events_t *ev,
    const sluice_events_receiver_t *to, const char *source,
    size_t source_length, const char *event, size_t event_length,
    const u_char *payload, size_t length)
{
    ngx_sluice_publication_t  pub;

    ngx_memzero(&pub, sizeof(ngx_sluice_publication_t));

    pub.message.kind = to->kind;
    pub.message.flags = to->flags;
    pub.message.source = source;
    pub.message.source_length = (uint16_t) source_length;
    pub.message.event = event;
    pub.message.event_length = (uint16_t) event_length;
    pub.message.worker = ev->worker;
    pub.message.payload[1] = payload;
    pub.left = length;

    if (to->kind == SLUICE_RING_WORKER) {
        /* the frame has one place, for the receiver: ours goes in front */
        ngx_memcpy(pub.worker, &ev->worker, sizeof(pub.worker));
        pub.message.length[0] = sizeof(pub.worker);
        pub.message.worker = (uint16_t) to->worker;
    }

    if (to->kind == SLUICE_RING_UNIQUE) {
        pub.message.key = sluice_ring_hash(&ev->ring, to->key, to->key_length);
        pub.message.timeout_ms = to->timeout_ms;
    }

    if ((to->flags & SLUICE_RING_REDELIVER)
        && length > sluice_ring_payload_limit(&ev->ring, source_length,
                                              event_length))
    {
        return SLUICE_LARGE;
    }

    return ngx_sluice_events_send(ev, &pub);
}


void
sluice_events_limit(sluice_events_t *ev, double count, double bytes)
{
    ev->max_count = (ngx_uint_t) count;
    ev->max_bytes = (size_t) bytes;
}


static int
ngx_sluice_events_send(sluice_events_t *ev, ngx_sluice_publication_t *pub)
{
    int  rc;

    if (!ev->open) {
        return SLUICE_NOSLOT;
    }

    if (ev->count == 0) {
        rc = ngx_sluice_events_put(ev, pub);

        if (rc != SLUICE_FULL && rc != SLUICE_BUSY) {
            return rc;
        }
    }

    return ngx_sluice_events_wait(ev, pub);
}


/* Puts into the log what is left of a publication; it says how far it came. */

static int
ngx_sluice_events_put(sluice_events_t *ev, ngx_sluice_publication_t *pub)
{
    int                     rc;
    size_t                  limit;
    sluice_ring_message_t  *m;

    m = &pub->message;

    if (m->length[0]) {
        m->payload[0] = pub->worker;
    }

    limit = sluice_ring_payload_limit(&ev->ring, m->source_length,
                                      m->event_length);

    if (limit <= m->length[0]) {
        return SLUICE_LARGE;
    }

    limit -= m->length[0];

    if (pub->left > limit && m->message == 0) {
        if (++ev->last_message == 0) {
            ev->last_message = 1;
        }

        m->message = ev->last_message;
        sluice_ring_sign(&ev->ring, m);
    }

    /* each turn takes limit bytes off a payload of at most 2^32 */

    while (pub->left > limit) {
        m->flags |= SLUICE_RING_MORE;
        m->length[1] = (uint32_t) limit;

        rc = ngx_sluice_events_append(ev, m);

        if (rc != SLUICE_OK) {
            return rc;
        }

        m->payload[1] = (const u_char *) m->payload[1] + limit;
        m->piece++;
        pub->left -= limit;
    }

    m->flags &= (uint8_t) ~SLUICE_RING_MORE;
    m->length[1] = (uint32_t) pub->left;

    return ngx_sluice_events_append(ev, m);
}


static int
ngx_sluice_events_wait(sluice_events_t *ev, ngx_sluice_publication_t *pub)
{
    u_char                 *p;
    size_t                  size;
    ngx_sluice_waiting_t   *w;
    sluice_ring_message_t  *m;

    m = &pub->message;

    size = m->source_length + m->event_length + pub->left;

    /* a publication of which pieces are in the log already has to be taken */

    if (m->piece == 0
        && !(m->flags & SLUICE_RING_AGAIN)
        && (ev->count >= ev->max_count
            || size > ev->max_bytes
            || ev->bytes > ev->max_bytes - size))
    {
        ngx_sluice_events_count(ev, NGX_SLUICE_C_REFUSED, 1);
        return SLUICE_FULL;
    }

    w = ngx_alloc(sizeof(ngx_sluice_waiting_t) + size, ngx_cycle->log);
    if (w == NULL) {
        return SLUICE_FULL;
    }

    w->pub = *pub;
    w->size = size;

    p = (u_char *) (w + 1);
    m = &w->pub.message;

    ngx_memcpy(p, m->source, m->source_length);
    m->source = (char *) p;
    p += m->source_length;

    ngx_memcpy(p, m->event, m->event_length);
    m->event = (char *) p;
    p += m->event_length;

    ngx_memcpy(p, m->payload[1], pub->left);
    m->payload[1] = p;

    ngx_queue_insert_tail(&ev->waiting, &w->queue);

    ev->count++;
    ev->bytes += size;

    ngx_sluice_events_count(ev, NGX_SLUICE_C_QUEUED, 1);

    if (!ev->retry.timer_set) {
        ngx_add_timer(&ev->retry, NGX_SLUICE_EVENTS_RETRY);
    }

    return NGX_SLUICE_EVENTS_QUEUED;
}


/* When there is space again, or when there might be. */

void
ngx_sluice_events_flush(sluice_events_t *ev)
{
    int                    rc;
    ngx_queue_t           *q;
    ngx_sluice_waiting_t  *w;

    /* what is put in meanwhile comes from this process: the loop ends */

    while (!ngx_queue_empty(&ev->waiting)) {

        q = ngx_queue_head(&ev->waiting);
        w = ngx_queue_data(q, ngx_sluice_waiting_t, queue);

        rc = ngx_sluice_events_put(ev, &w->pub);

        if (rc == SLUICE_FULL || rc == SLUICE_BUSY) {
            if (!ev->retry.timer_set) {
                ngx_add_timer(&ev->retry, NGX_SLUICE_EVENTS_RETRY);
            }

            break;
        }

        if (rc == SLUICE_OK && (w->pub.message.flags & SLUICE_RING_AGAIN)) {
            /* it was ours from the dead receiver until now: see ring.h */
            sluice_ring_done(&ev->ring, &w->inherited);
        }

        if (rc != SLUICE_OK && rc != SLUICE_REPEAT) {
            ngx_sluice_events_count(ev, NGX_SLUICE_C_DROPPED, 1);
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "sluice: a queued event is lost: %s",
                          sluice_ring_word(rc));
        }

        ngx_queue_remove(q);

        ev->count--;
        ev->bytes -= w->size;

        ngx_free(w);
    }

    if (ev->count == 0 && ev->retry.timer_set) {
        ngx_del_timer(&ev->retry);
    }
}


/* Called with the log's lock held: only takes a copy into the queue. */

void
ngx_sluice_events_redeliver(void *data, const sluice_ring_frame_t *frame)
{
    sluice_events_t *ev = data;

    ngx_sluice_waiting_t      *w;
    sluice_ring_message_t     *m;
    ngx_sluice_publication_t   pub;

    ngx_memzero(&pub, sizeof(ngx_sluice_publication_t));

    m = &pub.message;

    m->kind = SLUICE_RING_UNIQUE;
    m->flags = SLUICE_RING_REDELIVER|SLUICE_RING_AGAIN;
    m->worker = frame->worker;
    m->source = frame->source;
    m->source_length = frame->source_length;
    m->event = frame->event;
    m->event_length = frame->event_length;
    m->name_hash = frame->name_hash;
    m->payload[1] = frame->payload;
    pub.left = frame->length;

    if (ngx_sluice_events_wait(ev, &pub) != NGX_SLUICE_EVENTS_QUEUED) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "sluice: no memory to deliver an event again");
        return;
    }

    w = ngx_queue_data(ngx_queue_last(&ev->waiting), ngx_sluice_waiting_t,
                       queue);
    w->inherited = *frame;
}


static void
ngx_sluice_events_count(sluice_events_t *ev, int counter, uint64_t n)
{
    uint64_t  *counters;

    counters = sluice_ring_counters(&ev->ring);

    if (counters) {
        counters[counter] += n;
    }
}
