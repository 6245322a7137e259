/* weather.h - how badly the API server and the way to it behave: faults that scenarios share. */
#ifndef SLINC_SIM_WEATHER_H
#define SLINC_SIM_WEATHER_H

#include "sim_transport.h"

extern const struct sim_faults weather_slow, weather_watches_fail, weather_answers_fail;
extern const struct sim_faults weather_bad_day;     /* a little of everything */
extern const struct sim_faults weather_all_at_once; /* much of it */

#endif
