/* weather.c - faults of the API server and of the way to it, as scenarios have them. */
#include "weather.h"

const struct sim_faults weather_slow = { .slow = 60 };

const struct sim_faults weather_watches_fail = {
    .slow = 60,
    .watch_broken = 300,
    .watch_stalled = 100,
    .watch_expired = 300,
};

const struct sim_faults weather_answers_fail = {
    .slow = 30,
    .lost_before = 30,
    .lost_between = 30,
    .lost_after = 60,
    .late = 40,
    .conflict = 30,
    .too_many = 30,
    .internal = 40,
    .unavailable = 30,
};

const struct sim_faults weather_bad_day = {
    .slow = 30,
    .lost_before = 10,
    .lost_between = 10,
    .lost_after = 10,
    .late = 5,
    .conflict = 10,
    .too_many = 10,
    .internal = 10,
    .unavailable = 10,
    .watch_broken = 20,
    .watch_stalled = 5,
    .watch_expired = 50,
};

const struct sim_faults weather_all_at_once = {
    .slow = 150,
    .lost_before = 60,
    .lost_between = 60,
    .lost_after = 100,
    .late = 60,
    .conflict = 50,
    .too_many = 50,
    .internal = 60,
    .unavailable = 50,
    .watch_broken = 150,
    .watch_stalled = 50,
    .watch_expired = 200,
};
