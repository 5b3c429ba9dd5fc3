
/*
 * What the file-log plugin decides: no request is refused.
 */


#include "sluice_file_log.h"


static int sluice_file_log_ready(void *data,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);


static const sluice_packed_field_t  sluice_file_log_fields[] = {
    sluice_packed_field(NUMBER, sluice_file_log_t, reopen),
    sluice_packed_field(TEXT, sluice_file_log_t, path),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_file_log = {
    "file-log",
    sizeof(sluice_file_log_t),
    sluice_file_log_fields,
    sluice_file_log_ready,
    NULL,
    NULL
};


static int
sluice_file_log_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_file_log_t  *conf = data;

    (void) source;
    (void) memory;

    return conf->path.length ? SLUICE_CORE_OK : SLUICE_CORE_BAD;
}
