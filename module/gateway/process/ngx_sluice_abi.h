
/*
 * What Lua calls through FFI, declared here once for the files that define it,
 * and told to Lua by sluice_abi(), which compares it with its own declarations
 * (lib/sluice/abi.lua).
 */


#ifndef NGX_SLUICE_ABI_H_INCLUDED
#define NGX_SLUICE_ABI_H_INCLUDED


#include "ngx_sluice_events.h"
#include "ngx_sluice_images.h"
#include "ngx_sluice_metrics.h"
#include "ngx_sluice_timer.h"
#include "ngx_http_sluice_chain.h"
#include "ngx_http_sluice_header.h"
#include "ngx_http_sluice_identity.h"
#include "ngx_http_sluice_refuse.h"
#include "ngx_http_sluice_var.h"
#include "exposition.h"
#include "answer.h"           /* behind nginx's: it includes system headers */


/* For changes that no declaration shows; lib/sluice/abi.lua has it, too. */
#define NGX_SLUICE_ABI_VERSION      1


typedef struct {
    size_t       length;
    u_char      *data;
} sluice_header_value_t;


/* A function and how it is called, a field and where it is, a struct, or a
   flag and its value. */

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
    f(int, sluice_redact_publish, (u_char *name, size_t length))              \
    f(int, sluice_redact_is_secret, (u_char *name, size_t length))            \
                                                                              \
    f(uint64_t, sluice_core_image_bound,                                      \
      (const sluice_core_entity_t *entities, size_t count))                   \
    f(int, sluice_core_image_build,                                           \
      (const sluice_core_identity_t *identity,                                \
       const sluice_core_entity_t *entities, size_t count, void *buffer,      \
       uint64_t size, uint64_t *used))                                        \
    f(int, sluice_core_check, (const void *image, uint64_t size))             \
    f(void, sluice_core_work_begin,                                           \
      (sluice_core_work_t *work))                                             \
    f(int, sluice_core_work_end,                                              \
      (sluice_core_work_t *work))                                             \
    f(int, sluice_core_file_write,                                            \
      (const char *path, const void *data, uint64_t size, int sync))          \
    f(int, sluice_core_file_open,                                             \
      (const char *path, uint32_t uid, int check,                             \
       sluice_core_space_t *space))                                           \
    f(void, sluice_core_file_close, (sluice_core_space_t *space))             \
    f(uint64_t, sluice_core_file_changed, (const char *path))                 \
    f(void, sluice_core_identity,                                             \
      (const sluice_core_space_t *space, sluice_core_identity_t *identity))   \
    f(sluice_core_found_t, sluice_core_by_slot,                               \
      (const sluice_core_view_t *view, int kind, uint32_t slot))              \
    f(uint32_t, sluice_core_children,                                         \
      (const sluice_core_view_t *view, int child, int kind, uint32_t slot,    \
       const uint32_t **slots))                                               \
    f(uint32_t, sluice_core_number,                                           \
      (const sluice_core_found_t *found, int field))                          \
    f(sluice_core_text_t, sluice_core_text,                                   \
      (const sluice_core_found_t *found, int field))                          \
    f(uint32_t, sluice_core_list,                                             \
      (const sluice_core_found_t *found, int field))                          \
    f(sluice_core_text_t, sluice_core_list_item,                              \
      (const sluice_core_found_t *found, int field, uint32_t index))          \
    f(sluice_core_text_t, sluice_core_body,                                   \
      (const sluice_core_found_t *found))                                     \
    f(void, sluice_core_head,                                                 \
      (const sluice_core_found_t *found, sluice_core_entity_t *head))         \
    f(int, sluice_core_regex_check,                                           \
      (const char *pattern, uint32_t length, int is_path, char *message,      \
       size_t size))                                                          \
    f(sluice_core_regexes_t *, sluice_core_regexes_create,                    \
      (uint64_t limit))                                                       \
    f(int, sluice_core_regex_try,                                             \
      (sluice_core_regexes_t *regexes, const char *pattern, uint32_t length,  \
       int is_path, const char *subject, uint32_t subject_length,             \
       int is_first, int *reason))                                            \
    f(void, sluice_core_reason, (int reason, char *message, size_t size))     \
    f(const char *, sluice_core_word, (int rc))                               \
    f(int, sluice_core_delta_create,                                          \
      (const char *path, uint64_t size,                                       \
       const sluice_core_identity_t *identity, sluice_core_writer_t *writer)) \
    f(int, sluice_core_delta_open,                                            \
      (const char *path, uint32_t uid, int check,                             \
       sluice_core_space_t *space))                                           \
    f(int, sluice_core_delta_holds,                                           \
      (const sluice_core_space_t *delta,                                      \
       const sluice_core_identity_t *identity, uint64_t linked))              \
    f(void, sluice_core_delta_abandon, (sluice_core_writer_t *writer))        \
    f(void, sluice_core_delta_link, (sluice_core_writer_t *writer))           \
    f(uint64_t, sluice_core_delta_room, (const sluice_core_writer_t *writer)) \
    f(int, sluice_core_live,                                                  \
      (const sluice_core_view_t *view, const sluice_core_entity_t *changes,   \
       size_t count, sluice_core_live_t *live))                               \
    f(void, sluice_core_live_free, (sluice_core_live_t *live))                \
    f(size_t, sluice_core_page_size, (void))                                  \
    f(void, sluice_core_publish,                                              \
      (sluice_core_page_t *page, const sluice_core_published_t *published))   \
    f(int, sluice_core_published,                                             \
      (const sluice_core_page_t *page, sluice_core_published_t *published))   \
    f(int, sluice_core_delta_stage,                                           \
      (sluice_core_writer_t *writer, const sluice_core_view_t *view,          \
       const sluice_core_entity_t *changes, size_t count, uint64_t revision)) \
                                                                              \
    f(int, sluice_images_open, (const char *folder, size_t length))           \
    f(int, sluice_images_refresh, (void))                                     \
    f(const sluice_core_view_t *, sluice_images_view, (void))                 \
    f(uint64_t, sluice_images_epoch, (void))                                  \
    f(sluice_core_page_t *, sluice_images_page, (void))                       \
    f(int, sluice_images_match,                                               \
      (ngx_http_request_t *r, const u_char *path, size_t length,              \
       sluice_images_match_t *match))                                         \
    f(int, sluice_images_by_slot,                                             \
      (int kind, uint32_t slot, sluice_core_found_t *found))                  \
    f(int, sluice_images_by_id,                                               \
      (int kind, const u_char *id, sluice_core_found_t *found))               \
    f(int, sluice_images_by_key,                                              \
      (int kind, const u_char *key, size_t length,                            \
       sluice_core_found_t *found))                                           \
    f(int, sluice_images_credential,                                          \
      (const u_char *kind, size_t kind_length, const u_char *key,             \
       size_t length, sluice_core_found_t *found))                            \
    f(sluice_control_t *, sluice_control_block, (void))                       \
    f(int, sluice_control_accept, (void))                                     \
    f(int, sluice_control_deaths, (uint32_t ms))                              \
    f(int, sluice_control_watch,                                              \
      (const char *folder, void *semaphore, ngx_sluice_post_pt post))         \
                                                                              \
    f(void, sluice_metrics_count, (int what))                                 \
    f(uint32_t, sluice_metrics_limit, (void))                                 \
    f(const uint32_t *, sluice_metrics_bounds, (void))                        \
    f(void, sluice_metrics_node,                                              \
      (sluice_metrics_sum_t *sum, uint64_t *counts))                          \
    f(sluice_metrics_names_t *, sluice_metrics_names_create, (int kind))      \
    f(int, sluice_metrics_names_read,                                         \
      (sluice_metrics_names_t *names, uint32_t slots))                        \
    f(void, sluice_metrics_names_destroy, (sluice_metrics_names_t *names))    \
    f(uint32_t, sluice_metrics_names_count,                                   \
      (const sluice_metrics_names_t *names))                                  \
    f(size_t, sluice_metrics_write,                                           \
      (const sluice_metrics_names_t *names,                                   \
       const sluice_exposition_row_t *row, uint32_t *next, char *out,         \
       size_t size))                                                          \
    f(size_t, sluice_exposition_bound,                                        \
      (const sluice_exposition_row_t *row, size_t labels))                    \
    f(char *, sluice_exposition_write,                                        \
      (char *out, const sluice_exposition_row_t *row,                         \
       const sluice_core_text_t *labels, const uint64_t *numbers))            \
    f(int, sluice_metrics_connections,                                        \
      (sluice_metrics_connections_t *connections))                            \
                                                                              \
    f(int, sluice_ctx_lua, (ngx_http_request_t *r))                           \
    f(int, sluice_ctx_set_lua, (ngx_http_request_t *r, int place))            \
    f(int, sluice_client_is_gone, (ngx_http_request_t *r))                    \
    f(void, sluice_ctx_path,                                                  \
      (ngx_http_request_t *r, sluice_core_text_t *path))                      \
    f(int, sluice_ctx_entity,                                                 \
      (ngx_http_request_t *r, int kind, sluice_core_entity_t *entity))        \
    f(int, sluice_access_look, (ngx_http_request_t *r))                       \
    f(int, sluice_access_route,                                               \
      (ngx_http_request_t *r, ngx_http_sluice_refusal_t *refusal))            \
    f(int, sluice_access_enter,                                               \
      (ngx_http_request_t *r, ngx_http_sluice_refusal_t *refusal))            \
    f(int, sluice_access_leave,                                               \
      (ngx_http_request_t *r, ngx_http_sluice_refusal_t *refusal))            \
    f(int, sluice_plugins_declare,                                            \
      (const char *name, size_t length, uint32_t phases))                     \
    f(int, sluice_chain_access,                                               \
      (ngx_http_request_t *r, sluice_step_t *next))                           \
    f(int, sluice_chain_configured,                                           \
      (ngx_http_request_t *r, const sluice_step_t *step,                      \
       const char *failure, size_t length))                                   \
    f(int, sluice_chain_answer,                                               \
      (ngx_http_request_t *r, sluice_core_text_t *message))                   \
    f(int, sluice_chain_steps,                                                \
      (ngx_http_request_t *r, uint32_t phase, sluice_step_t *steps,           \
       uint32_t max))                                                         \
    f(int, sluice_authenticate,                                               \
      (ngx_http_request_t *r, const sluice_identity_t *identity))             \
    f(int, sluice_identity,                                                   \
      (ngx_http_request_t *r, sluice_identity_t *identity))                   \
    f(int, sluice_log_entry,                                                  \
      (ngx_http_request_t *r, const char *more, size_t length,                \
       sluice_core_text_t *entry))                                            \
    f(void, sluice_answer_words,                                              \
      (int status, char *buffer, sluice_core_text_t *words))                  \
    f(int, sluice_answer_error,                                               \
      (ngx_http_request_t *r, int status, const char *message,                \
       size_t length, sluice_core_text_t *type, sluice_core_text_t *body))    \
    f(int, sluice_answer_own, (ngx_http_request_t *r))                        \
    f(void, sluice_answer_status, (ngx_http_request_t *r, int status))


#define ngx_sluice_abi_declare(type, name, arguments)  type name arguments;

ngx_sluice_abi_functions(ngx_sluice_abi_declare)


#endif /* NGX_SLUICE_ABI_H_INCLUDED */
