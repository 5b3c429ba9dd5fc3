
/*
 * Numbers as the text of metrics: samples of Prometheus' format 0.0.4, which
 * are those of OpenMetrics 1.0, too.  Bytes only, and no allocation: this
 * knows nothing of nginx, nor which metrics there are.
 *
 *
 * SYNOPSIS
 *
 *     name{route="a",code="2xx"} 17
 *     ^^^^^                          sample.before
 *          ^^^^^^^^^                 labels
 *                   ^^^^^^^^^^^^^    sample.after
 *
 *     end = sluice_exposition_label(out, "route", &name);
 *
 *     out = allocate(sluice_exposition_bound(&row, labels.length));
 *     end = sluice_exposition_write(out, &row, &labels, numbers);
 *
 * Before and after are told once for each metric, labels are made once for
 * each route, so that a sample is three copies and the digits of a number.
 */

#ifndef SLUICE_EXPOSITION_H_INCLUDED
#define SLUICE_EXPOSITION_H_INCLUDED


#include "core.h"


/* FFI */

/* What is written of a number. */

typedef enum {
    SLUICE_EXPOSITION_NUMBER = 0,
    SLUICE_EXPOSITION_SEEN,         /* the number; where it is 0, no sample */
    SLUICE_EXPOSITION_BUCKET,       /* the number and all buckets before it */
    SLUICE_EXPOSITION_BUCKETS,      /* all buckets before, not the number */
    SLUICE_EXPOSITION_SECONDS       /* the number, which is milliseconds */
} sluice_exposition_form_e;


typedef struct {
    sluice_core_text_t                 before;
    sluice_core_text_t                 after;
    uint32_t                           number;    /* which of the numbers */
    uint32_t                           form;
} sluice_exposition_sample_t;


/* The samples of a metric that one entity has: at least one. */

typedef struct {
    const sluice_exposition_sample_t  *samples;
    uint32_t                           count;
    uint32_t                           zero;
} sluice_exposition_row_t;


/* Bytes that a label has at most; and the label: name="value", escaped. */

#define sluice_exposition_label_bound(name, length)                           \
    (sizeof(name "=\"\"") - 1 + 2 * (size_t) (length))

char *sluice_exposition_label(char *out, const char *name,
    const sluice_core_text_t *value);

/* What stands between its quotes, of twice as many bytes at most. */
char *sluice_exposition_value(char *out, const sluice_core_text_t *value);

/* Bytes that the samples of a row have at most; and the samples. */
size_t sluice_exposition_bound(const sluice_exposition_row_t *row,
    size_t labels);
char *sluice_exposition_write(char *out, const sluice_exposition_row_t *row,
    const sluice_core_text_t *labels, const uint64_t *numbers);

/* FFI end */


#endif /* SLUICE_EXPOSITION_H_INCLUDED */
