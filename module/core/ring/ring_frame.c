
/*
 * Frames: how one is laid out, and how one that may be anything is read.
 */


#include "ring_layout.h"

#include <string.h>


#define times(w, constant)  (sluice_ring_u128_t) (w) * (constant)


/*
 * A sum of products with odd constants: the multiplications do not wait for
 * each other, and any single changed word changes the sum.  The products are
 * whole: of their lower halves alone, changes of the highest bytes of two
 * words would make up for each other too often.
 */

uint32_t
sluice_ring_frame_check(const sluice_ring_header_t *h, uint64_t position)
{
    uint64_t            w[8];
    sluice_ring_u128_t  sum;

    memcpy(w, h, sizeof(w));

    sum = times(position ^ (uint64_t) h->length << 32, 0x9e3779b97f4a7c15u)
          + times(w[1], 0xa0761d6478bd642fu)
          + times(w[2], 0xe7037ed1a0b428dbu)
          + times(w[3], 0x8ebc6af09c88c6e3u)
          + times(w[4], 0x589965cc75374cc3u)
          + times(w[5], 0x1d8e4e27c47d124fu)
          + times(w[6], 0xeb44accab455d165u)
          + times(w[7], 0xc2b2ae3d27d4eb4fu);

    /* the lowest bytes reach the one half, the highest the other */

    return (uint32_t) (sum >> 32) ^ (uint32_t) (sum >> 64);
}


/* Bytes of the log that a message takes, or 0 if that is more than 2^31. */

uint32_t
sluice_ring_frame_size(const sluice_ring_message_t *m)
{
    uint64_t  n;

    n = sizeof(sluice_ring_header_t) + m->source_length + m->event_length
        + (uint64_t) m->length[0] + m->length[1];

    n = (n + 7) & ~7ull;

    return n > INT32_MAX ? 0 : (uint32_t) n;
}


/* The header comes complete but for check; nobody sees this memory yet. */

void
sluice_ring_frame_write(sluice_ring_t *ring, uint64_t position,
    sluice_ring_header_t *h, const sluice_ring_message_t *m)
{
    int       i;
    uint8_t  *p;

    h->check = sluice_ring_frame_check(h, position);

    p = ring->data + (position & ring->mask);

    memcpy(p, h, sizeof(sluice_ring_header_t));
    p += sizeof(sluice_ring_header_t);

    if (h->source) {
        memcpy(p, m->source, h->source);
        p += h->source;
    }

    if (h->event) {
        memcpy(p, m->event, h->event);
        p += h->event;
    }

    for (i = 0; i < 2; i++) {
        if (m->length[i]) {
            memcpy(p, m->payload[i], m->length[i]);
            p += m->length[i];
        }
    }
}


/*
 * Reads what should be frame number seq.  Whatever the memory holds, or turns
 * into meanwhile: every value is read once, and used only if all of them are
 * possible together.  No pointer given out leaves the log.
 */

int
sluice_ring_frame_read(const sluice_ring_t *ring, uint64_t position,
    uint64_t tail, uint64_t seq, sluice_ring_frame_t *frame)
{
    uint64_t               left, used;
    const uint8_t         *p;
    sluice_ring_header_t   h;

    left = tail - position;

    if (left < sizeof(h) || left > ring->size || (position & 7)) {
        return SLUICE_BAD;
    }

    p = ring->data + (position & ring->mask);

    memcpy(&h, p, sizeof(h));

    /* the compiler must not go back to the log for what it has copied */
    atomic_signal_fence(memory_order_seq_cst);

    used = sizeof(h) + h.source + h.event + (uint64_t) h.payload;

    if (h.length > left
        || h.length > ring->limit
        || h.length != ((used + 7) & ~7ull)
        || h.seq != seq
        || h.kind > SLUICE_RING_UNIQUE
        || h.check != sluice_ring_frame_check(&h, position))
    {
        return SLUICE_BAD;
    }

    p += sizeof(h);

    frame->source = (const char *) p;
    frame->event = (const char *) p + h.source;
    frame->payload = p + h.source + h.event;
    frame->seq = h.seq;
    frame->end = position + h.length;
    frame->sent_ms = h.sent_ms;
    frame->name_hash = h.name_hash;
    frame->length = h.payload;
    frame->offset = 0;
    frame->message = h.message;
    frame->piece = h.piece;
    frame->epoch = h.epoch;
    frame->entry = h.entry;
    frame->source_length = h.source;
    frame->event_length = h.event;
    frame->sender = h.sender;
    frame->worker = h.worker;
    frame->kind = h.kind;
    frame->flags = h.flags;

    return SLUICE_OK;
}
