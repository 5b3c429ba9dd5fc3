
/*
 * The end of a run: its statistics, its lines in the log, its ngx.ctx.
 */


#include "ngx_sluice_timer.h"


#define NGX_SLUICE_TIMER_LEFT_OUT                                             \
    sizeof(" (and  more since the last such line)") + NGX_INT64_LEN


static void SLUICE_WHEEL_RARE ngx_sluice_timer_fail(sluice_timer_core_t *core,
    sluice_timer_t *t, uint64_t now, const char *error);
static void SLUICE_WHEEL_RARE ngx_sluice_timer_warn(sluice_timer_core_t *core,
    sluice_timer_t *t, uint64_t elapsed, uint64_t now);
static u_char *ngx_sluice_timer_left_out(sluice_timers_account_t *a,
    u_char *buf);
static void SLUICE_WHEEL_RARE ngx_sluice_timer_clean(sluice_timer_core_t *core,
    int ctx);


/* of nobody's interest, unless something else counts them */
static uint64_t  ngx_sluice_timer_own_counts[2];

uint64_t  *ngx_sluice_timer_counts = ngx_sluice_timer_own_counts;


void
ngx_sluice_timer_finish(sluice_timer_core_t *core,
    ngx_sluice_timer_context_t *c, uint64_t now, const char *error)
{
    int              ctx;
    sluice_timer_t  *t;

    t = c->run.timer;

    /* one of the two may be about right only */
    now = ngx_max(now, c->run.start_ns);

    if (c->request) {
        ctx = core->ctx(c->request, NULL, NULL);

        if (ctx >= 0) {
            ngx_sluice_timer_clean(core, ctx);
        }
    }

    if (error) {
        ngx_sluice_timer_fail(core, t, now, error);
    }

    if (t->warn_ms && now - c->run.start_ns > t->warn_ms * 1000000ULL) {
        ngx_sluice_timer_warn(core, t, now - c->run.start_ns, now);
    }

    sluice_timers_finish(&core->timers, &c->run, now, error != NULL);

    ngx_sluice_timer_counts[0]++;
    ngx_sluice_timer_counts[1] += (error != NULL);

    /* what a taken over context arms, nobody else does */

    if (core->owner == NGX_SLUICE_TIMER_NOBODY && !core->destroyed) {
        ngx_sluice_timer_poke(core);
    }
}


/* Keeps an error for the statistics, and logs it. */

static void SLUICE_WHEEL_RARE
ngx_sluice_timer_fail(sluice_timer_core_t *core, sluice_timer_t *t,
    uint64_t now, const char *error)
{
    u_char                    more[NGX_SLUICE_TIMER_LEFT_OUT];
    sluice_timers_account_t  *a;

    a = core->timers.accounts[t->place];

    lua_pushstring(core->vm, error);

    if (!(t->flags & SLUICE_TIMER_GONE)) {
        t->flags |= SLUICE_TIMER_ERROR;
        lua_pushnumber(core->vm, sluice_timers_handle(t));
        lua_pushvalue(core->vm, -2);
        lua_rawset(core->vm, NGX_SLUICE_TIMER_FAILED);
    }

    lua_rawseti(core->vm, NGX_SLUICE_TIMER_ERRORS, (int) t->place + 1);

    if (a->logged_ns == 0 || now - a->logged_ns > NGX_SLUICE_TIMER_QUIET) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "sluice: a timer made at %s failed%s: %s",
                      ngx_sluice_timer_place_text(core, t->place),
                      ngx_sluice_timer_left_out(a, more), error);
        a->logged_ns = now;
        a->unlogged = 0;

    } else {
        a->unlogged++;
    }
}


static void SLUICE_WHEEL_RARE
ngx_sluice_timer_warn(sluice_timer_core_t *core, sluice_timer_t *t,
    uint64_t elapsed, uint64_t now)
{
    u_char                    more[NGX_SLUICE_TIMER_LEFT_OUT];
    sluice_timers_account_t  *a;

    a = core->timers.accounts[t->place];

    if (a->logged_ns && now - a->logged_ns < NGX_SLUICE_TIMER_QUIET) {
        a->unlogged++;
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "sluice: a timer made at %s ran for %uL ms%s",
                  ngx_sluice_timer_place_text(core, t->place),
                  elapsed / 1000000, ngx_sluice_timer_left_out(a, more));

    a->logged_ns = now;
    a->unlogged = 0;
}


/* what to add to a line of the log: nothing, if none was left out before it */

static u_char *
ngx_sluice_timer_left_out(sluice_timers_account_t *a, u_char *buf)
{
    u_char  *last;

    last = buf;

    if (a->unlogged) {
        last = ngx_sprintf(buf, " (and %uL more since the last such line)",
                           a->unlogged);
    }

    *last = '\0';

    return buf;
}


/*
 * The next run gets an ngx.ctx of its own if this one has used it: a new
 * table in the old one's place, which whoever holds may go on to use.
 */

static void SLUICE_WHEEL_RARE
ngx_sluice_timer_clean(sluice_timer_core_t *core, int ctx)
{
    if (lua_type(core->vm, NGX_SLUICE_TIMER_CTX) != LUA_TTABLE) {
        return;
    }

    lua_createtable(core->vm, 0, 4);
    lua_rawseti(core->vm, NGX_SLUICE_TIMER_CTX, ctx);
}
