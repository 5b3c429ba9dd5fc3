
/*
 * What the access-log plugin decides: no request is refused, and which of them
 * are logged is drawn in the access phase, by what stands in the
 * configuration.
 */


#include "sluice_access_log.h"


static int sluice_access_log_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);


static const sluice_packed_field_t  sluice_access_log_fields[] = {
    sluice_packed_field(DOUBLE, sluice_access_log_t, sample),
    sluice_packed_field(NUMBER, sluice_access_log_t, errors),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_access_log = {
    "access-log",
    sizeof(sluice_access_log_t),
    sluice_access_log_fields,
    sluice_access_log_ready,
    NULL,
    NULL
};


static int
sluice_access_log_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_access_log_t  *conf = data;

    (void) source;
    (void) memory;

    if (conf->sample < 0 || conf->sample > 1) {
        return SLUICE_CORE_BAD;
    }

    conf->share = (uint32_t) (conf->sample * SLUICE_ACCESS_LOG_ALL);

    return SLUICE_CORE_OK;
}
