
/*
 * The http-log plugin: the entry of a request goes to a log server.
 */


#ifndef SLUICE_HTTP_LOG_H_INCLUDED
#define SLUICE_HTTP_LOG_H_INCLUDED


#include "decision.h"


extern const sluice_decision_plugin_t  sluice_http_log;


#endif /* SLUICE_HTTP_LOG_H_INCLUDED */
