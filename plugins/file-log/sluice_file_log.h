
/*
 * The file-log plugin: into which file the entry of a request goes.
 */


#ifndef SLUICE_FILE_LOG_H_INCLUDED
#define SLUICE_FILE_LOG_H_INCLUDED


#include "decision.h"


typedef struct {
    uint32_t            reopen;
    sluice_core_text_t  path;
} sluice_file_log_t;


extern const sluice_decision_plugin_t  sluice_file_log;


#endif /* SLUICE_FILE_LOG_H_INCLUDED */
