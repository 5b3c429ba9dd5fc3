
/*
 * Tells Lua what it shares with C.
 */


#include "ngx_sluice_abi.h"


#define ngx_sluice_abi_function(type, name, arguments)                        \
    { #name, #type " " #arguments, 0, 0 },

#define ngx_sluice_abi_struct(type)  { #type, "", 0, sizeof(type) }

#define ngx_sluice_abi_flag(name)                                             \
    { "flags", #name, NGX_HTTP_SLUICE_##name, 0 }

#define ngx_sluice_abi_field(type, field)                                     \
    { #type, #field, offsetof(type, field), sizeof(((type *) NULL)->field) }


static const sluice_abi_t  ngx_sluice_abi[] = {

    ngx_sluice_abi_functions(ngx_sluice_abi_function)

    ngx_sluice_abi_struct(sluice_ring_frame_t),
    ngx_sluice_abi_field(sluice_ring_frame_t, payload),
    ngx_sluice_abi_field(sluice_ring_frame_t, source),
    ngx_sluice_abi_field(sluice_ring_frame_t, event),
    ngx_sluice_abi_field(sluice_ring_frame_t, seq),
    /* "end" is a word of Lua, and its numbers have no 64 bits */
    { "sluice_ring_frame_t", "end_", offsetof(sluice_ring_frame_t, end), 8 },
    ngx_sluice_abi_field(sluice_ring_frame_t, sent_ms),
    { "sluice_ring_frame_t", "name_low",
      offsetof(sluice_ring_frame_t, name_hash), 4 },
    { "sluice_ring_frame_t", "name_high",
      offsetof(sluice_ring_frame_t, name_hash) + 4, 4 },
    ngx_sluice_abi_field(sluice_ring_frame_t, length),
    ngx_sluice_abi_field(sluice_ring_frame_t, message),
    ngx_sluice_abi_field(sluice_ring_frame_t, piece),
    ngx_sluice_abi_field(sluice_ring_frame_t, epoch),
    ngx_sluice_abi_field(sluice_ring_frame_t, entry),
    ngx_sluice_abi_field(sluice_ring_frame_t, source_length),
    ngx_sluice_abi_field(sluice_ring_frame_t, event_length),
    ngx_sluice_abi_field(sluice_ring_frame_t, sender),
    ngx_sluice_abi_field(sluice_ring_frame_t, worker),
    ngx_sluice_abi_field(sluice_ring_frame_t, kind),
    ngx_sluice_abi_field(sluice_ring_frame_t, flags),

    ngx_sluice_abi_struct(sluice_ring_slot_stats_t),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, count),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, lag),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, lag_bytes),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, pid),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, epoch),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, generation),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, worker),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, state),
    ngx_sluice_abi_field(sluice_ring_slot_stats_t, asleep),

    ngx_sluice_abi_struct(sluice_ring_stats_t),
    ngx_sluice_abi_field(sluice_ring_stats_t, size),
    ngx_sluice_abi_field(sluice_ring_stats_t, used),
    ngx_sluice_abi_field(sluice_ring_stats_t, tail),
    ngx_sluice_abi_field(sluice_ring_stats_t, seq),
    ngx_sluice_abi_field(sluice_ring_stats_t, attached),
    ngx_sluice_abi_field(sluice_ring_stats_t, detached),
    ngx_sluice_abi_field(sluice_ring_stats_t, slots),
    ngx_sluice_abi_field(sluice_ring_stats_t, top),
    ngx_sluice_abi_field(sluice_ring_stats_t, frame_limit),
    ngx_sluice_abi_field(sluice_ring_stats_t, stall_ms),
    ngx_sluice_abi_field(sluice_ring_stats_t, generation),
    ngx_sluice_abi_field(sluice_ring_stats_t, zero),

    /* what is behind frames is not Lua's */
    { "sluice_events_t", "", 0, offsetof(sluice_events_t, ring) },
    ngx_sluice_abi_field(sluice_events_t, delivered),
    ngx_sluice_abi_field(sluice_events_t, failed),
    ngx_sluice_abi_field(sluice_events_t, dropped),
    ngx_sluice_abi_field(sluice_events_t, generation),
    ngx_sluice_abi_field(sluice_events_t, workers),
    ngx_sluice_abi_field(sluice_events_t, frames),

    ngx_sluice_abi_struct(sluice_var_value_t),
    ngx_sluice_abi_field(sluice_var_value_t, last),
    ngx_sluice_abi_field(sluice_var_value_t, data),
    ngx_sluice_abi_field(sluice_var_value_t, last_length),
    ngx_sluice_abi_field(sluice_var_value_t, number),
    ngx_sluice_abi_field(sluice_var_value_t, length),

    ngx_sluice_abi_struct(sluice_header_t),
    ngx_sluice_abi_field(sluice_header_t, name),
    ngx_sluice_abi_field(sluice_header_t, lowcase),
    ngx_sluice_abi_field(sluice_header_t, length),
    ngx_sluice_abi_field(sluice_header_t, hash),
    ngx_sluice_abi_field(sluice_header_t, own),

    ngx_sluice_abi_struct(sluice_header_value_t),
    ngx_sluice_abi_field(sluice_header_value_t, length),
    ngx_sluice_abi_field(sluice_header_value_t, data),

    /* a text of nginx has its length first */
    { "sluice_refusal_t", "", 0, sizeof(ngx_http_sluice_refusal_t) },
    { "sluice_refusal_t", "status",
      offsetof(ngx_http_sluice_refusal_t, status), 8 },
    { "sluice_refusal_t", "message_length",
      offsetof(ngx_http_sluice_refusal_t, message.len), 8 },
    { "sluice_refusal_t", "message",
      offsetof(ngx_http_sluice_refusal_t, message.data), 8 },
    { "sluice_refusal_t", "location_length",
      offsetof(ngx_http_sluice_refusal_t, location.len), 8 },
    { "sluice_refusal_t", "location",
      offsetof(ngx_http_sluice_refusal_t, location.data), 8 },

    ngx_sluice_abi_struct(sluice_core_text_t),
    ngx_sluice_abi_field(sluice_core_text_t, data),
    ngx_sluice_abi_field(sluice_core_text_t, length),

    ngx_sluice_abi_struct(sluice_core_header_t),
    ngx_sluice_abi_field(sluice_core_header_t, name),
    ngx_sluice_abi_field(sluice_core_header_t, values),
    ngx_sluice_abi_field(sluice_core_header_t, count),

    ngx_sluice_abi_struct(sluice_core_value_t),
    ngx_sluice_abi_field(sluice_core_value_t, data),
    ngx_sluice_abi_field(sluice_core_value_t, count),
    ngx_sluice_abi_field(sluice_core_value_t, number),

    ngx_sluice_abi_struct(sluice_core_entity_t),
    ngx_sluice_abi_field(sluice_core_entity_t, id),
    ngx_sluice_abi_field(sluice_core_entity_t, revision),
    ngx_sluice_abi_field(sluice_core_entity_t, created_at),
    ngx_sluice_abi_field(sluice_core_entity_t, sequence),
    ngx_sluice_abi_field(sluice_core_entity_t, slot),
    ngx_sluice_abi_field(sluice_core_entity_t, generation),
    ngx_sluice_abi_field(sluice_core_entity_t, body),
    ngx_sluice_abi_field(sluice_core_entity_t, body_length),
    ngx_sluice_abi_field(sluice_core_entity_t, zero),
    ngx_sluice_abi_field(sluice_core_entity_t, kind),
    ngx_sluice_abi_field(sluice_core_entity_t, gone),
    ngx_sluice_abi_field(sluice_core_entity_t, fields),

    ngx_sluice_abi_struct(sluice_core_identity_t),
    ngx_sluice_abi_field(sluice_core_identity_t, store),
    ngx_sluice_abi_field(sluice_core_identity_t, revision),

    ngx_sluice_abi_struct(sluice_core_space_t),
    ngx_sluice_abi_field(sluice_core_space_t, base),
    ngx_sluice_abi_field(sluice_core_space_t, size),

    ngx_sluice_abi_struct(sluice_core_view_t),
    ngx_sluice_abi_field(sluice_core_view_t, base),
    ngx_sluice_abi_field(sluice_core_view_t, delta),
    ngx_sluice_abi_field(sluice_core_view_t, revision),

    ngx_sluice_abi_struct(sluice_core_found_t),
    ngx_sluice_abi_field(sluice_core_found_t, record),
    ngx_sluice_abi_field(sluice_core_found_t, space),

    ngx_sluice_abi_struct(sluice_core_work_t),
    ngx_sluice_abi_field(sluice_core_work_t, identity),
    ngx_sluice_abi_field(sluice_core_work_t, entities),
    ngx_sluice_abi_field(sluice_core_work_t, count),
    ngx_sluice_abi_field(sluice_core_work_t, path),
    ngx_sluice_abi_field(sluice_core_work_t, size),
    ngx_sluice_abi_field(sluice_core_work_t, thread),
    ngx_sluice_abi_field(sluice_core_work_t, is_begun),
    ngx_sluice_abi_field(sluice_core_work_t, rc),
    ngx_sluice_abi_field(sluice_core_work_t, error),

    ngx_sluice_abi_struct(sluice_core_writer_t),
    ngx_sluice_abi_field(sluice_core_writer_t, space),
    ngx_sluice_abi_field(sluice_core_writer_t, tail),
    ngx_sluice_abi_field(sluice_core_writer_t, linked),
    ngx_sluice_abi_field(sluice_core_writer_t, dependents),
    ngx_sluice_abi_field(sluice_core_writer_t, first),
    ngx_sluice_abi_field(sluice_core_writer_t, last),

    ngx_sluice_abi_struct(sluice_core_published_t),
    ngx_sluice_abi_field(sluice_core_published_t, base),
    ngx_sluice_abi_field(sluice_core_published_t, delta),
    ngx_sluice_abi_field(sluice_core_published_t, revision),

    ngx_sluice_abi_struct(sluice_core_live_t),
    ngx_sluice_abi_field(sluice_core_live_t, entities),
    ngx_sluice_abi_field(sluice_core_live_t, count),
    ngx_sluice_abi_field(sluice_core_live_t, scratch),

    ngx_sluice_abi_struct(sluice_images_match_t),
    ngx_sluice_abi_field(sluice_images_match_t, revision),
    ngx_sluice_abi_field(sluice_images_match_t, epoch),
    ngx_sluice_abi_field(sluice_images_match_t, slot),
    ngx_sluice_abi_field(sluice_images_match_t, generation),
    ngx_sluice_abi_field(sluice_images_match_t, service),
    ngx_sluice_abi_field(sluice_images_match_t, prefix),
    ngx_sluice_abi_field(sluice_images_match_t, reason),
    ngx_sluice_abi_field(sluice_images_match_t, zero),
    ngx_sluice_abi_field(sluice_images_match_t, route),

    ngx_sluice_abi_struct(sluice_step_t),
    ngx_sluice_abi_field(sluice_step_t, revision),
    ngx_sluice_abi_field(sluice_step_t, plugin),
    ngx_sluice_abi_field(sluice_step_t, slot),
    ngx_sluice_abi_field(sluice_step_t, generation),
    ngx_sluice_abi_field(sluice_step_t, zero),

    ngx_sluice_abi_struct(sluice_identity_text_t),
    ngx_sluice_abi_field(sluice_identity_text_t, length),
    ngx_sluice_abi_field(sluice_identity_text_t, data),

    ngx_sluice_abi_struct(sluice_identity_t),
    ngx_sluice_abi_field(sluice_identity_t, consumer),
    ngx_sluice_abi_field(sluice_identity_t, credential),
    ngx_sluice_abi_field(sluice_identity_t, custom_id),
    ngx_sluice_abi_field(sluice_identity_t, username),
    ngx_sluice_abi_field(sluice_identity_t, consumer_slot),
    ngx_sluice_abi_field(sluice_identity_t, consumer_generation),
    ngx_sluice_abi_field(sluice_identity_t, credential_slot),
    ngx_sluice_abi_field(sluice_identity_t, credential_generation),
    ngx_sluice_abi_field(sluice_identity_t, is_own),
    ngx_sluice_abi_field(sluice_identity_t, zero),

    ngx_sluice_abi_struct(sluice_control_t),
    ngx_sluice_abi_field(sluice_control_t, started_at),
    ngx_sluice_abi_field(sluice_control_t, heartbeat),
    ngx_sluice_abi_field(sluice_control_t, revision),
    ngx_sluice_abi_field(sluice_control_t, failures),
    ngx_sluice_abi_field(sluice_control_t, failed_at),
    ngx_sluice_abi_field(sluice_control_t, pid),
    ngx_sluice_abi_field(sluice_control_t, state),
    ngx_sluice_abi_field(sluice_control_t, starts),
    ngx_sluice_abi_field(sluice_control_t, deaths),
    ngx_sluice_abi_field(sluice_control_t, crashes),
    ngx_sluice_abi_field(sluice_control_t, checked),
    ngx_sluice_abi_field(sluice_control_t, recent_deaths),
    ngx_sluice_abi_field(sluice_control_t, seats),
    ngx_sluice_abi_field(sluice_control_t, error),

    ngx_sluice_abi_struct(sluice_metrics_histogram_t),
    ngx_sluice_abi_field(sluice_metrics_histogram_t, buckets),
    ngx_sluice_abi_field(sluice_metrics_histogram_t, sum),

    ngx_sluice_abi_struct(sluice_metrics_sum_t),
    ngx_sluice_abi_field(sluice_metrics_sum_t, unanswered),
    ngx_sluice_abi_field(sluice_metrics_sum_t, answered),
    ngx_sluice_abi_field(sluice_metrics_sum_t, received),
    ngx_sluice_abi_field(sluice_metrics_sum_t, sent),
    ngx_sluice_abi_field(sluice_metrics_sum_t, total),
    ngx_sluice_abi_field(sluice_metrics_sum_t, upstream),
    ngx_sluice_abi_field(sluice_metrics_sum_t, gateway),

    ngx_sluice_abi_struct(sluice_exposition_sample_t),
    ngx_sluice_abi_field(sluice_exposition_sample_t, before),
    ngx_sluice_abi_field(sluice_exposition_sample_t, after),
    ngx_sluice_abi_field(sluice_exposition_sample_t, number),
    ngx_sluice_abi_field(sluice_exposition_sample_t, form),

    ngx_sluice_abi_struct(sluice_exposition_row_t),
    ngx_sluice_abi_field(sluice_exposition_row_t, samples),
    ngx_sluice_abi_field(sluice_exposition_row_t, count),
    ngx_sluice_abi_field(sluice_exposition_row_t, zero),

    ngx_sluice_abi_struct(sluice_metrics_connections_t),
    ngx_sluice_abi_field(sluice_metrics_connections_t, accepted),
    ngx_sluice_abi_field(sluice_metrics_connections_t, handled),
    ngx_sluice_abi_field(sluice_metrics_connections_t, active),
    ngx_sluice_abi_field(sluice_metrics_connections_t, reading),
    ngx_sluice_abi_field(sluice_metrics_connections_t, writing),
    ngx_sluice_abi_field(sluice_metrics_connections_t, waiting),

    /* those of gateway/image/flags.lua, like the fields of a struct */
    { "flags", "", 0, 0 },
    ngx_sluice_abi_flag(ROUTE_STRIP_PATH),
    ngx_sluice_abi_flag(ROUTE_PRESERVE_HOST),
    ngx_sluice_abi_flag(ROUTE_STREAM_REQUEST),
    ngx_sluice_abi_flag(ROUTE_STREAM_RESPONSE),
    ngx_sluice_abi_flag(ROUTE_HTTPS_ONLY),
    ngx_sluice_abi_flag(ROUTE_PATH_V1),
    ngx_sluice_abi_flag(ROUTE_REDIRECT),
    ngx_sluice_abi_flag(SERVICE_HTTPS),
    ngx_sluice_abi_flag(SERVICE_VERIFY),
    ngx_sluice_abi_flag(SERVICE_DEPTH),
    ngx_sluice_abi_flag(PLUGIN_OF_CONSUMERS),
    ngx_sluice_abi_flag(PLUGIN_OF_GROUPS),

    { NULL, NULL, 0, 0 }
};


int
sluice_abi_version(void)
{
    return NGX_SLUICE_ABI_VERSION;
}


/* Entry i, less than that of the end, which has no name. */

const sluice_abi_t *
sluice_abi(int i)
{
    return &ngx_sluice_abi[i];
}
