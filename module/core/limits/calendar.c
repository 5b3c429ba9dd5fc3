
/*
 * Calendar windows in UTC.  Unix time has no leap seconds, so days are
 * regular.
 */


#include "meter.h"


#define CORE_DAY  86400


static uint64_t core_days(uint64_t year, uint64_t month);
static void core_month(uint64_t day, uint64_t *year, uint64_t *month);


void
sluice_core_calendar(int period, uint64_t now, uint64_t *start,
    uint64_t *finish)
{
    uint64_t               year, month;
    static const uint64_t  lengths[] = { 1, 60, 3600, CORE_DAY };

    if (period < SLUICE_CORE_MONTH) {
        *start = now - now % lengths[period];
        *finish = *start + lengths[period];
        return;
    }

    core_month(now / CORE_DAY, &year, &month);

    if (period == SLUICE_CORE_YEAR) {
        *start = core_days(year, 1) * CORE_DAY;
        *finish = core_days(year + 1, 1) * CORE_DAY;
        return;
    }

    *start = core_days(year, month) * CORE_DAY;
    *finish = (month == 12 ? core_days(year + 1, 1)
                           : core_days(year, month + 1)) * CORE_DAY;
}


/*
 * From 1970-01-01 to the first of a month.  Years begin in March here, so that
 * the leap day is the last of its year, and the months before it have lengths
 * that one linear expression gives: days_from_civil, for years after 0.
 */

static uint64_t
core_days(uint64_t year, uint64_t month)
{
    if (month <= 2) {
        year -= 1;
        month += 12;
    }

    return 365 * year + year / 4 - year / 100 + year / 400
           + (153 * (month - 3) + 2) / 5 - 719468;
}


/* And back: year and month (1 to 12) of a day. */

static void
core_month(uint64_t day, uint64_t *year, uint64_t *month)
{
    uint64_t  era, of_era, of_year;

    day += 719468;
    era = day / 146097;
    of_era = day % 146097;
    *year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    of_year = of_era - (365 * *year + *year / 4 - *year / 100);

    *month = (5 * of_year + 2) / 153 + 3;
    *year += era * 400;

    if (*month > 12) {
        *month -= 12;
        *year += 1;
    }
}
