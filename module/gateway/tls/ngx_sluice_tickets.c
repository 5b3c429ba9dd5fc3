
/*
 * Keys of tickets by the clock (ngx_sluice_tickets.h).
 */


#include "ngx_sluice_tickets.h"
#include "siphash.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdatomic.h>


#define NGX_SLUICE_TICKETS_WORDS  (sizeof(ngx_sluice_ticket_key_t) / 8)

_Static_assert(sizeof(ngx_sluice_ticket_key_t) % 8 == 0, "words");


static ngx_int_t ngx_sluice_tickets_read(uint64_t period,
    ngx_sluice_ticket_key_t *key);
static void ngx_sluice_tickets_draw(ngx_sluice_tickets_slot_t *slot,
    uint64_t period);
static void ngx_sluice_tickets_write(ngx_sluice_tickets_slot_t *slot,
    uint64_t period, const ngx_sluice_ticket_key_t *key);
static uint64_t ngx_sluice_tickets_digest(uint64_t period,
    const ngx_sluice_ticket_key_t *key);


#define ngx_sluice_tickets_period(now)                                        \
    ((uint64_t) (now) / NGX_SLUICE_TICKETS_PERIOD)


ngx_sluice_tickets_t  *ngx_sluice_tickets;


void
ngx_sluice_tickets_turn(time_t now)
{
    ngx_uint_t                  i;
    uint64_t                    period, there;
    ngx_sluice_tickets_t       *tickets;
    ngx_sluice_ticket_key_t     key;
    ngx_sluice_tickets_slot_t  *slot;

    tickets = ngx_sluice_tickets;

    if (tickets == NULL) {
        return;
    }

    period = ngx_sluice_tickets_period(now);

    for (i = 0; i < 2; i++) {

        if (ngx_sluice_tickets_read(period + i, &key) != NGX_OK) {
            slot = &tickets->slots[(period + i) % NGX_SLUICE_TICKETS_SLOTS];
            ngx_sluice_tickets_draw(slot, period + i);
        }
    }

    OPENSSL_cleanse(&key, sizeof(key));

    for (i = 0; i < NGX_SLUICE_TICKETS_SLOTS; i++) {
        slot = &tickets->slots[i];
        there = atomic_load(&slot->period);

        if (there && (there + 1 < period || there > period + 1)) {
            ngx_memzero(&key, sizeof(key));
            ngx_sluice_tickets_write(slot, 0, &key);
        }
    }
}


ngx_int_t
ngx_sluice_tickets_current(time_t now, ngx_sluice_ticket_key_t *key)
{
    ngx_int_t  rc;

    rc = ngx_sluice_tickets_read(ngx_sluice_tickets_period(now), key);

    if (rc != NGX_OK) {
        ngx_sluice_tickets_turn(now);
        rc = ngx_sluice_tickets_read(ngx_sluice_tickets_period(now), key);
    }

    return rc;
}


ngx_int_t
ngx_sluice_tickets_named(time_t now, const u_char *name,
    ngx_sluice_ticket_key_t *key)
{
    ngx_uint_t  i;
    uint64_t    period;

    period = ngx_sluice_tickets_period(now);

    for (i = 0; i < 3; i++) {

        if (ngx_sluice_tickets_read(period + 1 - i, key) == NGX_OK
            && CRYPTO_memcmp(key->name, name, sizeof(key->name)) == 0)
        {
            return i == 2 ? NGX_AGAIN : NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_sluice_tickets_read(uint64_t period, ngx_sluice_ticket_key_t *key)
{
    ngx_uint_t                  i;
    uint64_t                    words[NGX_SLUICE_TICKETS_WORDS];
    ngx_sluice_tickets_t       *tickets;
    ngx_sluice_tickets_slot_t  *slot;

    tickets = ngx_sluice_tickets;

    if (tickets == NULL) {
        return NGX_DECLINED;
    }

    slot = &tickets->slots[period % NGX_SLUICE_TICKETS_SLOTS];

    if (atomic_load(&slot->period) != period) {
        return NGX_DECLINED;
    }

    for (i = 0; i < NGX_SLUICE_TICKETS_WORDS; i++) {
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
    }

    ngx_memcpy(key, words, sizeof(words));

    return atomic_load(&slot->digest) == ngx_sluice_tickets_digest(period, key)
           ? NGX_OK : NGX_DECLINED;
}


static void
ngx_sluice_tickets_draw(ngx_sluice_tickets_slot_t *slot, uint64_t period)
{
    ngx_sluice_ticket_key_t  key;

    if (RAND_bytes((u_char *) &key, sizeof(key)) == 1) {
        ngx_sluice_tickets_write(slot, period, &key);
    }

    OPENSSL_cleanse(&key, sizeof(key));
}


static void
ngx_sluice_tickets_write(ngx_sluice_tickets_slot_t *slot, uint64_t period,
    const ngx_sluice_ticket_key_t *key)
{
    ngx_uint_t  i;
    uint64_t    words[NGX_SLUICE_TICKETS_WORDS];

    ngx_memcpy(words, key, sizeof(words));

    atomic_store(&slot->period, 0);

    for (i = 0; i < NGX_SLUICE_TICKETS_WORDS; i++) {
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    }

    atomic_store(&slot->digest, ngx_sluice_tickets_digest(period, key));
    atomic_store(&slot->period, period);

    OPENSSL_cleanse(words, sizeof(words));
}


/* Not for secrecy: that all of a slot is of one write. */

static uint64_t
ngx_sluice_tickets_digest(uint64_t period, const ngx_sluice_ticket_key_t *key)
{
    static const uint64_t  none[2];

    return sluice_core_siphash(none, 2, 4, period, key,
                               sizeof(ngx_sluice_ticket_key_t));
}
