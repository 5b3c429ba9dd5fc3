
/*
 * Decisions (decision.h): what their makers share.
 */


#include "bytes.h"
#include "decision.h"


static int sluice_decision_value(const sluice_decision_request_t *request,
    const sluice_core_text_t *value, sluice_header_value_t *line);
static int sluice_decision_has_control(const sluice_core_text_t *value);
static void *sluice_decision_twice(const sluice_decision_request_t *request,
    const void *array, uint32_t *max, size_t size);


int
sluice_decision_compile(const sluice_decision_plugin_t *plugin,
    const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory, void *conf)
{
    int  rc;

    memset(conf, 0, plugin->size);

    rc = sluice_packed_read(plugin->fields, &source->packed, memory, conf);

    if (rc != SLUICE_CORE_OK || plugin->ready == NULL) {
        return rc;
    }

    return plugin->ready(conf, source, memory);
}


int
sluice_decision_set(const sluice_decision_request_t *request,
    sluice_decision_result_t *result, sluice_header_t *header,
    const sluice_core_text_t *value)
{
    void                  *lines;
    sluice_header_line_t  *line;

    if (result->lines_count == result->lines_max) {
        lines = sluice_decision_twice(request, result->lines,
                                      &result->lines_max, sizeof(*line));
        if (lines == NULL) {
            return SLUICE_FACT_MEMORY;
        }

        result->lines = lines;
    }

    if (header->hash == 0) {
        sluice_header_name_hash(header);
    }

    line = &result->lines[result->lines_count];

    line->header = header;

    if (sluice_decision_value(request, value, &line->value)
        != SLUICE_FACT_OK)
    {
        return SLUICE_FACT_MEMORY;
    }

    result->lines_count++;

    return SLUICE_FACT_OK;
}


/*
 * What a client has sent may come back in it: control characters but the tab
 * are escaped, as the Lua module of nginx does with whatever sets a header.
 */

static int
sluice_decision_value(const sluice_decision_request_t *request,
    const sluice_core_text_t *value, sluice_header_value_t *line)
{
    uint32_t       i;
    unsigned char  c, *p;

    static const char  digits[] = "0123456789ABCDEF";

    line->data = (unsigned char *) value->data;
    line->length = value->length;

    if (!sluice_decision_has_control(value)) {
        return SLUICE_FACT_OK;
    }

    p = sluice_decision_allocate(request, 3 * (size_t) value->length);
    if (p == NULL) {
        return SLUICE_FACT_MEMORY;
    }

    line->data = p;

    for (i = 0; i < value->length; i++) {
        c = (unsigned char) value->data[i];

        if ((c >= 0x20 && c != 0x7f) || c == '\t') {
            *p++ = c;
            continue;
        }

        *p++ = '%';
        *p++ = (unsigned char) digits[c >> 4];
        *p++ = (unsigned char) digits[c & 0xf];
    }

    line->length = (size_t) (p - line->data);

    return SLUICE_FACT_OK;
}


static int
sluice_decision_has_control(const sluice_core_text_t *value)
{
    size_t               i, n;
    sluice_bytes_t       bytes;
    sluice_bytes_mask_t  mask;

    for (i = 0; i < value->length; i += n) {
        n = value->length - i;
        n = n < SLUICE_BYTES ? n : SLUICE_BYTES;

        bytes = sluice_bytes_load(value->data + i, n);
        mask = ((bytes < 0x20) & (bytes != '\t')) | (bytes == 0x7f);

        if (sluice_bytes_first(mask) < n) {
            return 1;
        }
    }

    return 0;
}


int
sluice_decision_edit(const sluice_decision_request_t *request,
    sluice_decision_result_t *result, int verb, sluice_header_t *header,
    const sluice_core_text_t *value)
{
    void                    *edits;
    sluice_decision_edit_t  *edit;

    if (result->edits_count == result->edits_max) {
        edits = sluice_decision_twice(request, result->edits,
                                      &result->edits_max, sizeof(*edit));
        if (edits == NULL) {
            return SLUICE_FACT_MEMORY;
        }

        result->edits = edits;
    }

    if (header->hash == 0) {
        sluice_header_name_hash(header);
    }

    edit = &result->edits[result->edits_count++];

    edit->verb = (uint32_t) verb;
    edit->header = header;

    if (value) {
        edit->value = *value;

    } else {
        edit->value.data = "";
        edit->value.length = 0;
    }

    return SLUICE_FACT_OK;
}


/* A full array, in twice its room; NULL: no memory. */

static void *
sluice_decision_twice(const sluice_decision_request_t *request,
    const void *array, uint32_t *max, size_t size)
{
    void  *larger;

    larger = sluice_decision_allocate(request, 2 * *max * size);

    if (larger) {
        memcpy(larger, array, *max * size);
        *max *= 2;
    }

    return larger;
}


sluice_core_text_t
sluice_decision_copy(const sluice_decision_request_t *request,
    const sluice_core_text_t *text)
{
    char                *data;
    sluice_core_text_t   copy;

    data = sluice_decision_allocate(request,
                                    text->length ? text->length : 1);

    if (data && text->length) {
        memcpy(data, text->data, text->length);
    }

    copy.data = data;
    copy.length = text->length;

    return copy;
}
