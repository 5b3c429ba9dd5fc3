
/*
 * What Lua calls through FFI, declared here once for the files that define it,
 * and told to Lua by sluice_abi(), which compares it with its own declarations
 * (lib/sluice/abi.lua).
 */


#ifndef NGX_SLUICE_ABI_H_INCLUDED
#define NGX_SLUICE_ABI_H_INCLUDED


#include "climb.h"
#include "ngx_sluice_events.h"
#include "ngx_sluice_timer.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_var.h"


/* For changes that no declaration shows; lib/sluice/abi.lua has it, too. */
#define NGX_SLUICE_ABI_VERSION      1

#define NGX_HTTP_SLUICE_PEER_TEXT  64  /* "[", an IPv6 address, "]:65535" */


/* kept by Lua (gateway/proxy/peer.lua) while a configuration is live */

typedef struct {
    uint64_t     sockaddr[4];
    uint32_t     socklen;
    uint32_t     length;
    u_char       text[NGX_HTTP_SLUICE_PEER_TEXT];
} sluice_peer_t;


/* milliseconds; 0: as nginx.conf has it */

typedef struct {
    uint32_t     connect;
    uint32_t     send;
    uint32_t     read;
} sluice_peer_timeouts_t;


typedef struct {
    size_t       length;
    u_char      *data;
} sluice_header_value_t;


/* A function and how it is called, a field and where it is, or a struct. */

typedef struct {
    const char  *name;
    const char  *of;
    uint32_t     offset;
    uint32_t     size;
} sluice_abi_t;


#define ngx_sluice_abi_functions(f)                                           \
    f(int, sluice_abi_version, (void))                                        \
    f(const sluice_abi_t *, sluice_abi, (int i))                              \
                                                                              \
    f(const char *, sluice_events_word, (int rc))                             \
    f(double, sluice_events_clock, (void))                                    \
    f(sluice_events_t *, sluice_events_open, (int vm))                        \
    f(void, sluice_events_limit,                                              \
      (sluice_events_t *ev, double count, double bytes))                      \
    f(int, sluice_events_attach,                                              \
      (sluice_events_t *ev, void *semaphore, void *spare,                     \
       ngx_sluice_post_pt post, ngx_sluice_count_pt count_of,                 \
       double *missed))                                                       \
    f(void, sluice_events_detach, (sluice_events_t *ev))                      \
    f(uint64_t, sluice_events_name_hash,                                      \
      (sluice_events_t *ev, const char *source, size_t source_length,         \
       const char *event, size_t event_length))                               \
    f(int, sluice_events_publish,                                             \
      (sluice_events_t *ev, uint64_t name_hash, const char *source,           \
       size_t source_length, const char *event, size_t event_length,          \
       const u_char *payload, size_t length))                                 \
    f(int, sluice_events_publish_to,                                          \
      (sluice_events_t *ev, int kind, uint32_t worker, const char *key,       \
       size_t key_length, uint32_t timeout_ms, int flags,                     \
       const char *source, size_t source_length, const char *event,           \
       size_t event_length, const u_char *payload, size_t length))            \
    f(int, sluice_events_next, (sluice_events_t *ev))                         \
    f(int, sluice_events_intact, (sluice_events_t *ev))                       \
    f(int, sluice_events_rejoin, (sluice_events_t *ev, double *missed))       \
    f(int, sluice_events_claim,                                               \
      (sluice_events_t *ev, const sluice_ring_frame_t *frame))                \
    f(void, sluice_events_done,                                               \
      (sluice_events_t *ev, const sluice_ring_frame_t *frame))                \
    f(void, sluice_events_pause, (sluice_events_t *ev))                       \
    f(void, sluice_events_stats,                                              \
      (sluice_events_t *ev, sluice_ring_stats_t *stats))                      \
    f(int, sluice_events_slot_stats,                                          \
      (sluice_events_t *ev, uint32_t slot, sluice_ring_slot_stats_t *stats))  \
    f(double, sluice_events_enter,                                            \
      (void *request, void *semaphore, ngx_sluice_post_pt post))              \
    f(void, sluice_events_leave, (double serial))                             \
    f(int, sluice_events_has_ended, (double serial))                          \
    f(void, sluice_events_leave_all, (void))                                  \
                                                                              \
    f(int, sluice_count_listening, (const char *address, size_t length))      \
    f(int, sluice_disable_listening, (const char *address, size_t length))    \
    f(int, sluice_peer_credentials,                                           \
      (uint64_t number, int32_t *pid, uint32_t *uid))                         \
                                                                              \
    f(const char *, sluice_timer_path, (void))                                \
    f(int, sluice_timer_start,                                                \
      (sluice_timer_core_t *core, void *semaphore,                            \
       ngx_sluice_timer_post_pt post, ngx_sluice_timer_ctx_pt ctx))           \
    f(int, sluice_timer_enter,                                                \
      (sluice_timer_core_t *core, void *request, int http))                   \
                                                                              \
    f(int, sluice_var_count, (void))                                          \
    f(int, sluice_var_name, (int number, u_char **data))                      \
    f(int, sluice_var_get,                                                    \
      (ngx_http_request_t *r, unsigned number, const u_char *last,            \
       size_t last_length, u_char **data))                                    \
    f(int, sluice_var_get_bulk,                                               \
      (ngx_http_request_t *r, int count, sluice_var_value_t *values))         \
    f(int, sluice_var_set,                                                    \
      (ngx_http_request_t *r, unsigned number, const u_char *data,            \
       size_t length))                                                        \
                                                                              \
    f(int, sluice_header_of_request,                                          \
      (ngx_http_request_t *r, sluice_header_t *header,                        \
       sluice_header_value_t *first))                                         \
    f(int, sluice_header_to_request,                                          \
      (ngx_http_request_t *r, sluice_header_t *header, u_char *value,         \
       size_t length))                                                        \
    f(int, sluice_header_to_response,                                         \
      (ngx_http_request_t *r, sluice_header_t *header, u_char *value,         \
       size_t length))                                                        \
    f(int, sluice_header_number_to_response,                                  \
      (ngx_http_request_t *r, sluice_header_t *header, int64_t value))        \
                                                                              \
    f(size_t, sluice_redact,                                                  \
      (u_char *dst, u_char *text, size_t length, int kind))                   \
    f(int, sluice_redact_add, (u_char *name, size_t length))                  \
    f(int, sluice_redact_is_secret, (u_char *name, size_t length))            \
                                                                              \
    f(int, sluice_climb_leaves,                                               \
      (const unsigned char *path, size_t length, size_t base_length))         \
    f(void, sluice_gateway_refuse_header, (ngx_http_request_t *r))            \
    f(int, sluice_peer_parse,                                                 \
      (ngx_http_request_t *r, u_char *text, size_t length,                    \
       sluice_peer_t *peer))                                                  \
    f(int, sluice_peer_use,                                                   \
      (ngx_http_request_t *r, const sluice_peer_t *peer, uint32_t tries,      \
       const sluice_peer_timeouts_t *timeouts))


#define ngx_sluice_abi_declare(type, name, arguments)  type name arguments;

ngx_sluice_abi_functions(ngx_sluice_abi_declare)


#endif /* NGX_SLUICE_ABI_H_INCLUDED */
