
/*
 * Turns of the event loop: what takes longer than others may be kept waiting
 * for, goes on in the next one.
 */


#include "ngx_http_sluice_turn.h"


/*
 * A timer, since a worker that quits waits for those, and for no posted event.
 * Of 1 ms: timers of 0 run again before anything else has its turn.
 */

#define NGX_HTTP_SLUICE_TURN  1


static void ngx_http_sluice_turn_handler(ngx_event_t *e);
static void ngx_http_sluice_turn_cleanup(void *data);


ngx_int_t
ngx_http_sluice_turn(ngx_http_request_t *r, ngx_http_sluice_ctx_t *ctx)
{
    ngx_event_t         *turn;
    ngx_pool_cleanup_t  *cln;

    turn = ctx->turn;

    if (turn == NULL) {
        turn = ngx_pcalloc(r->pool, sizeof(ngx_event_t));
        cln = ngx_pool_cleanup_add(r->pool, 0);

        if (turn == NULL || cln == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        turn->handler = ngx_http_sluice_turn_handler;
        turn->log = r->connection->log;

        cln->handler = ngx_http_sluice_turn_cleanup;
        cln->data = ctx;

        ctx->turn = turn;
    }

    turn->data = r;

    /* a client that leaves waits no longer */

    r->read_event_handler = ngx_http_test_reading;

    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_add_timer(turn, NGX_HTTP_SLUICE_TURN);

    return NGX_DONE;
}


static void
ngx_http_sluice_turn_handler(ngx_event_t *e)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = e->data;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    /* what says that the client leaves may have come before it waited */

    if (c->read->pending_eof) {
        r->read_event_handler(r);
        ngx_http_run_posted_requests(c);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler(r);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_sluice_turn_cleanup(void *data)
{
    ngx_http_sluice_turn_end(data);
}


void
ngx_http_sluice_turn_end(ngx_http_sluice_ctx_t *ctx)
{
    if (ctx->turn && ctx->turn->timer_set) {
        ngx_del_timer(ctx->turn);
    }
}
