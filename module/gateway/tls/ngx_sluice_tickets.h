
/*
 * The keys of TLS session tickets (RFC 5077), in memory that all workers
 * share and that outlives reloads and binary upgrades (ngx_sluice_page.c).
 *
 * A key belongs to a period of NGX_SLUICE_TICKETS_PERIOD seconds.  Tickets are
 * made with the key of the period that is; those of the period before are
 * still taken.  The key of the next one is there before it begins, so that
 * workers whose clocks read on both sides of the border know each other's.
 *
 * The control worker draws keys, once a second where one is missing, and
 * wipes what is older; were it away for hours, who needs a key draws it.  A
 * slot carries a digest of what is in it: one that a writer died in, or that
 * two have written at once, counts as empty, and is drawn anew.  Nobody waits
 * for anybody.
 */


#ifndef NGX_SLUICE_TICKETS_H_INCLUDED
#define NGX_SLUICE_TICKETS_H_INCLUDED


#include <ngx_config.h>
#include <ngx_core.h>


#define NGX_SLUICE_TICKETS_PERIOD  3600
#define NGX_SLUICE_TICKETS_SLOTS   4
#define NGX_SLUICE_TICKETS_NAME    16
#define NGX_SLUICE_TICKETS_KEY     32


typedef struct {
    u_char    name[NGX_SLUICE_TICKETS_NAME];
    u_char    cipher[NGX_SLUICE_TICKETS_KEY];    /* AES-256-CBC */
    u_char    mac[NGX_SLUICE_TICKETS_KEY];       /* HMAC-SHA-256 */
} ngx_sluice_ticket_key_t;


typedef struct {
    _Atomic uint64_t  period;                    /* 0: none */
    _Atomic uint64_t  words[sizeof(ngx_sluice_ticket_key_t) / 8];
    _Atomic uint64_t  digest;
} ngx_sluice_tickets_slot_t;


typedef struct {
    ngx_sluice_tickets_slot_t  slots[NGX_SLUICE_TICKETS_SLOTS];
} ngx_sluice_tickets_t;


/* Draws what is missing; wipes what is too old.  now: seconds since 1970. */
void ngx_sluice_tickets_turn(time_t now);

/* The key to make tickets with.  NGX_OK, or NGX_DECLINED: there is none. */
ngx_int_t ngx_sluice_tickets_current(time_t now, ngx_sluice_ticket_key_t *key);

/*
 * The key with a name.  NGX_OK; NGX_AGAIN: it is of the period before, renew
 * the ticket; NGX_DECLINED: nobody has it any more.
 */
ngx_int_t ngx_sluice_tickets_named(time_t now, const u_char *name,
    ngx_sluice_ticket_key_t *key);

/* In shared memory; NULL without "sluice_control on" (ngx_sluice_page.c). */

extern ngx_sluice_tickets_t  *ngx_sluice_tickets;


#endif /* NGX_SLUICE_TICKETS_H_INCLUDED */
