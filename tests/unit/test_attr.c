/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* Attribute objects of mutexes, read-write locks and clients: a value that is set is read
 * back; a value out of range is refused and leaves the object unchanged. No server. */
#include "base/texts.h"
#include "net/url.h"
#include "suite.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rlock_mutexattr_t attr;
static rlock_rwlockattr_t rwattr;
static rlock_clientattr_t cattr;

static void set_up(void)
{
    ck_assert_int_eq(rlock_mutexattr_init(&attr), 0);
    ck_assert_int_eq(rlock_rwlockattr_init(&rwattr), 0);
    ck_assert_int_eq(rlock_clientattr_init(&cattr), 0);
}

/* ---- a table of the int attributes */

typedef int (*set_fn)(rlock_mutexattr_t *attr, int value);
typedef int (*get_fn)(const rlock_mutexattr_t *attr, int *ret_value);

static int set_lease(rlock_mutexattr_t *a, int value)
{
    return rlock_mutexattr_setlease(a, value);
}

static int get_lease(const rlock_mutexattr_t *a, int *ret_value)
{
    long value = *ret_value;
    int rc = rlock_mutexattr_getlease(a, ret_value ? &value : NULL);
    *ret_value = (int)value;
    return rc;
}

static int set_handoff_ms(rlock_mutexattr_t *a, int value)
{
    return rlock_mutexattr_sethandoffms(a, value);
}

static int set_retain(rlock_mutexattr_t *a, int value)
{
    return rlock_mutexattr_setretain(a, value);
}

static int get_retain(const rlock_mutexattr_t *a, int *ret_value)
{
    long value = *ret_value;
    int rc = rlock_mutexattr_getretain(a, ret_value ? &value : NULL);
    *ret_value = (int)value;
    return rc;
}

static int get_handoff_ms(const rlock_mutexattr_t *a, int *ret_value)
{
    long value = *ret_value;
    int rc = rlock_mutexattr_gethandoffms(a, ret_value ? &value : NULL);
    *ret_value = (int)value;
    return rc;
}

static const struct {
    const char *name;
    set_fn set;
    get_fn get;
    int initial;
    int good[6];
    int good_count;
    int bad[6];
    int bad_count;
    int refused, refused_code; /* a value that pthread has and this library has not; -1:
                                  none */
} rows[] = {
    { "type",
      rlock_mutexattr_settype,
      rlock_mutexattr_gettype,
      RLOCK_MUTEX_RECURSIVE,
      { RLOCK_MUTEX_NORMAL, RLOCK_MUTEX_RECURSIVE, RLOCK_MUTEX_ERRORCHECK,
        RLOCK_MUTEX_ADAPTIVE_NP, RLOCK_MUTEX_DEFAULT },
      5,
      { -1, 4, INT_MAX, INT_MIN },
      4,
      -1,
      0 },
    { "robust",
      rlock_mutexattr_setrobust,
      rlock_mutexattr_getrobust,
      RLOCK_MUTEX_STALLED,
      { RLOCK_MUTEX_ROBUST, RLOCK_MUTEX_STALLED },
      2,
      { -1, 2, INT_MAX, INT_MIN },
      4,
      -1,
      0 },
    { "robust_np",
      rlock_mutexattr_setrobust_np,
      rlock_mutexattr_getrobust_np,
      RLOCK_MUTEX_STALLED_NP,
      { RLOCK_MUTEX_ROBUST_NP, RLOCK_MUTEX_STALLED_NP },
      2,
      { -1, 2 },
      2,
      -1,
      0 },
    { "pshared",
      rlock_mutexattr_setpshared,
      rlock_mutexattr_getpshared,
      RLOCK_PROCESS_PRIVATE,
      { RLOCK_PROCESS_SHARED, RLOCK_PROCESS_PRIVATE },
      2,
      { -1, 2, INT_MAX, INT_MIN },
      4,
      -1,
      0 },
    { "protocol",
      rlock_mutexattr_setprotocol,
      rlock_mutexattr_getprotocol,
      RLOCK_PRIO_NONE,
      { RLOCK_PRIO_INHERIT, RLOCK_PRIO_NONE },
      2,
      { -1, 3, INT_MAX, INT_MIN },
      4,
      RLOCK_PRIO_PROTECT,
      ENOTSUP },
    { "fencing",
      rlock_mutexattr_setfencing,
      rlock_mutexattr_getfencing,
      0,
      { 1, 0 },
      2,
      { -1, 2, INT_MAX, INT_MIN },
      4,
      -1,
      0 },
    { "outage",
      rlock_mutexattr_setoutage,
      rlock_mutexattr_getoutage,
      RLOCK_OUTAGE_WAIT,
      { RLOCK_OUTAGE_FAIL, RLOCK_OUTAGE_ABORT, RLOCK_OUTAGE_WAIT },
      3,
      { -1, 3, INT_MAX, INT_MIN },
      4,
      -1,
      0 },
    { "lease",
      set_lease,
      get_lease,
      0,
      { 50, 51, 30000, 86400000, 0 },
      5,
      { -1, 1, 49, 86400001, INT_MAX, INT_MIN },
      6,
      -1,
      0 },
    { "handoffms",
      set_handoff_ms,
      get_handoff_ms,
      10,
      { 0, 1, 86400000, 10 },
      4,
      { -1, 86400001, INT_MAX, INT_MIN },
      4,
      -1,
      0 },
    { "retain",
      set_retain,
      get_retain,
      0,
      { 1, 86400000, 0 },
      3,
      { -1, 86400001, INT_MAX, INT_MIN },
      4,
      -1,
      0 },
    { "handoffcount",
      rlock_mutexattr_sethandoffcount,
      rlock_mutexattr_gethandoffcount,
      1000,
      { 0, 1, 1000000000, 1000 },
      4,
      { -1, 1000000001, INT_MAX, INT_MIN },
      4,
      -1,
      0 },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static int value_of(int row)
{
    int value = -12345;
    ck_assert_msg(rows[row].get(&attr, &value) == 0, "%s", rows[row].name);
    return value;
}

START_TEST(mutexattr_has_its_initial_value)
{
    ck_assert_int_eq(value_of(_i), rows[_i].initial);
}
END_TEST

START_TEST(mutexattr_stores_set_values)
{
    for (int i = 0; i < rows[_i].good_count; i++) {
        ck_assert_int_eq(rows[_i].set(&attr, rows[_i].good[i]), 0);
        ck_assert_int_eq(value_of(_i), rows[_i].good[i]);
        for (int other = 0; other < ROWS; other++) /* and no other attribute changes */
            if (other != _i && rows[other].get != rows[_i].get &&
                strncmp(rows[other].name, rows[_i].name, 6) != 0)
                ck_assert_int_eq(value_of(other), rows[other].initial);
    }
}
END_TEST

START_TEST(mutexattr_refuses_and_stays_as_it_was)
{
    ck_assert_int_eq(rows[_i].set(&attr, rows[_i].good[0]), 0);
    rlock_mutexattr_t before = attr;
    for (int i = 0; i < rows[_i].bad_count; i++) {
        ck_assert_msg(rows[_i].set(&attr, rows[_i].bad[i]) == EINVAL, "%s %d",
                      rows[_i].name, rows[_i].bad[i]);
        ck_assert_str_ne(rlock_errmsg(), "");
        ck_assert_int_eq(memcmp(&attr, &before, sizeof(attr)), 0);
    }
    if (rows[_i].refused >= 0)
        ck_assert_int_eq(rows[_i].set(&attr, rows[_i].refused), rows[_i].refused_code);
    ck_assert_int_eq(memcmp(&attr, &before, sizeof(attr)), 0);
}
END_TEST

START_TEST(mutexattr_that_is_none_is_EINVAL)
{
    rlock_mutexattr_t zero, garbage, gone;
    memset(&zero, 0, sizeof(zero));
    memset(&garbage, 0xff, sizeof(garbage));
    ck_assert_int_eq(rlock_mutexattr_init(&gone), 0);
    ck_assert_int_eq(rlock_mutexattr_destroy(&gone), 0);
    rlock_mutexattr_t *bad[] = { NULL, &zero, &garbage, &gone };
    for (int i = 0; i < 4; i++) {
        int value = -12345;
        ck_assert_int_eq(rows[_i].set(bad[i], rows[_i].good[0]), EINVAL);
        ck_assert_int_eq(rows[_i].get(bad[i], &value), EINVAL);
        ck_assert_int_eq(value, -12345);
        ck_assert_int_eq(rlock_mutexattr_destroy(bad[i]), EINVAL);
        ck_assert_int_eq(rlock_mutexattr_setclient(bad[i], NULL), EINVAL);
        ck_assert_int_eq(rlock_mutexattr_setprioceiling(bad[i], 1), EINVAL);
        ck_assert_int_eq(rlock_mutexattr_getprioceiling(bad[i], &value), EINVAL);
    }
    if (rows[_i].get != get_lease && rows[_i].get != get_handoff_ms &&
        rows[_i].get != get_retain)
        ck_assert_int_eq(rows[_i].get(&attr, NULL), EINVAL);
}
END_TEST

/* Where long has more bits than int, this value as an int would be a good lease. */
#define BEYOND_AN_INT (LONG_MAX > INT_MAX ? (long)((INT64_C(1) << 32) + 60) : LONG_MAX)

START_TEST(mutexattr_lease_takes_a_long)
{
    ck_assert_int_eq(rlock_mutexattr_gethandoffms(&attr, NULL), EINVAL);
    ck_assert_int_eq(rlock_mutexattr_getretain(&attr, NULL), EINVAL);
    long ms = 7;
    ck_assert_int_eq(rlock_mutexattr_setlease(&attr, LONG_MAX), EINVAL);
    ck_assert_int_eq(rlock_mutexattr_setlease(&attr, LONG_MIN), EINVAL);
    ck_assert_int_eq(rlock_mutexattr_setlease(&attr, BEYOND_AN_INT), EINVAL);
    ck_assert_int_eq(rlock_mutexattr_getlease(&attr, NULL), EINVAL);
    ck_assert_int_eq(rlock_mutexattr_getlease(&attr, &ms), 0);
    ck_assert_int_eq(ms, 0);
}
END_TEST

START_TEST(prioceiling_is_ENOTSUP)
{
    int ceiling = 7;
    ck_assert_int_eq(rlock_mutexattr_setprioceiling(&attr, 1), ENOTSUP);
    ck_assert_int_eq(rlock_mutexattr_getprioceiling(&attr, &ceiling), ENOTSUP);
    ck_assert_int_eq(ceiling, 7);
    ck_assert_int_eq(rlock_mutexattr_getprioceiling(&attr, NULL), EINVAL);
}
END_TEST

START_TEST(mutexattr_client_is_an_open_one)
{
    static char nobody;
    rlock_client_t *client = NULL, *got = NULL;
    ck_assert_int_eq(rlock_mutexattr_getclient(&attr, &got), 0);
    ck_assert_ptr_null(got);
    ck_assert_int_eq(rlock_client_open(&client, "unix:///nonexistent", NULL), 0);
    ck_assert_int_eq(rlock_mutexattr_setclient(&attr, client), 0);
    ck_assert_int_eq(rlock_mutexattr_getclient(&attr, &got), 0);
    ck_assert_ptr_eq(got, client);
    ck_assert_int_eq(rlock_mutexattr_getclient(&attr, NULL), EINVAL);
    rlock_mutexattr_t before = attr;
    ck_assert_int_eq(rlock_mutexattr_setclient(&attr, (rlock_client_t *)(void *)&nobody),
                     EINVAL);
    ck_assert_int_eq(memcmp(&attr, &before, sizeof(attr)), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
    got = NULL;
    ck_assert_int_eq(rlock_mutexattr_getclient(&attr, &got), EINVAL);
    ck_assert_ptr_null(got);
    ck_assert_int_eq(rlock_mutexattr_setclient(&attr, NULL), 0);
    ck_assert_int_eq(rlock_mutexattr_getclient(&attr, &got), 0);
    ck_assert_ptr_null(got);
}
END_TEST

/* ---- attributes of read-write locks */

typedef int (*rwset_fn)(rlock_rwlockattr_t *attr, int value);
typedef int (*rwget_fn)(const rlock_rwlockattr_t *attr, int *ret_value);

static int set_rwlease(rlock_rwlockattr_t *a, int value)
{
    return rlock_rwlockattr_setlease(a, value);
}

static int get_rwlease(const rlock_rwlockattr_t *a, int *ret_value)
{
    long value = ret_value ? *ret_value : 0;
    int rc = rlock_rwlockattr_getlease(a, ret_value ? &value : NULL);
    if (ret_value)
        *ret_value = (int)value;
    return rc;
}

static int set_rwretain(rlock_rwlockattr_t *a, int value)
{
    return rlock_rwlockattr_setretain(a, value);
}

static int get_rwretain(const rlock_rwlockattr_t *a, int *ret_value)
{
    long value = ret_value ? *ret_value : 0;
    int rc = rlock_rwlockattr_getretain(a, ret_value ? &value : NULL);
    if (ret_value)
        *ret_value = (int)value;
    return rc;
}

static const struct {
    const char *name;
    rwset_fn set;
    rwget_fn get;
    int initial;
    int good[6];
    int good_count;
    int bad[6];
    int bad_count;
} rwrows[] = {
    { "kind",
      rlock_rwlockattr_setkind_np,
      rlock_rwlockattr_getkind_np,
      RLOCK_RWLOCK_PHASE_FAIR_NP,
      { RLOCK_RWLOCK_PREFER_READER_NP, RLOCK_RWLOCK_PREFER_WRITER_NP,
        RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, RLOCK_RWLOCK_DEFAULT_NP,
        RLOCK_RWLOCK_PHASE_FAIR_NP },
      5,
      { -1, 3, 15, 17, INT_MAX, INT_MIN },
      6 },
    { "pshared",
      rlock_rwlockattr_setpshared,
      rlock_rwlockattr_getpshared,
      RLOCK_PROCESS_PRIVATE,
      { RLOCK_PROCESS_SHARED, RLOCK_PROCESS_PRIVATE },
      2,
      { -1, 2, INT_MAX, INT_MIN },
      4 },
    { "fencing",
      rlock_rwlockattr_setfencing,
      rlock_rwlockattr_getfencing,
      0,
      { 1, 0 },
      2,
      { -1, 2, INT_MAX, INT_MIN },
      4 },
    { "outage",
      rlock_rwlockattr_setoutage,
      rlock_rwlockattr_getoutage,
      RLOCK_OUTAGE_WAIT,
      { RLOCK_OUTAGE_FAIL, RLOCK_OUTAGE_ABORT, RLOCK_OUTAGE_WAIT },
      3,
      { -1, 3, INT_MAX, INT_MIN },
      4 },
    { "lease",
      set_rwlease,
      get_rwlease,
      0,
      { 50, 51, 30000, 86400000, 0 },
      5,
      { -1, 1, 49, 86400001, INT_MAX, INT_MIN },
      6 },
    { "retain",
      set_rwretain,
      get_rwretain,
      0,
      { 1, 86400000, 0 },
      3,
      { -1, 86400001, INT_MAX, INT_MIN },
      4 },
};
enum { RWROWS = sizeof(rwrows) / sizeof(rwrows[0]) };

static int rwvalue_of(int row)
{
    int value = -12345;
    ck_assert_msg(rwrows[row].get(&rwattr, &value) == 0, "%s", rwrows[row].name);
    return value;
}

START_TEST(rwlockattr_stores_set_values)
{
    ck_assert_int_eq(rwvalue_of(_i), rwrows[_i].initial);
    for (int i = 0; i < rwrows[_i].good_count; i++) {
        ck_assert_int_eq(rwrows[_i].set(&rwattr, rwrows[_i].good[i]), 0);
        ck_assert_int_eq(rwvalue_of(_i), rwrows[_i].good[i]);
        for (int other = 0; other < RWROWS; other++) /* and no other attribute changes */
            if (other != _i)
                ck_assert_int_eq(rwvalue_of(other), rwrows[other].initial);
    }
}
END_TEST

START_TEST(rwlockattr_refuses_and_stays_as_it_was)
{
    ck_assert_int_eq(rwrows[_i].set(&rwattr, rwrows[_i].good[0]), 0);
    rlock_rwlockattr_t before = rwattr;
    for (int i = 0; i < rwrows[_i].bad_count; i++) {
        ck_assert_msg(rwrows[_i].set(&rwattr, rwrows[_i].bad[i]) == EINVAL, "%s %d",
                      rwrows[_i].name, rwrows[_i].bad[i]);
        ck_assert_str_ne(rlock_errmsg(), "");
        ck_assert_int_eq(memcmp(&rwattr, &before, sizeof(rwattr)), 0);
    }
    ck_assert_int_eq(rlock_rwlockattr_setlease(&rwattr, BEYOND_AN_INT), EINVAL);
    ck_assert_int_eq(memcmp(&rwattr, &before, sizeof(rwattr)), 0);
}
END_TEST

/* Also the attribute object of a mutex: both have some attributes, but the types differ.
 */
START_TEST(rwlockattr_that_is_none_is_EINVAL)
{
    rlock_rwlockattr_t zero, garbage, gone;
    rlock_rwlock_t rwlock;
    rlock_mutex_t mutex;
    rlock_fair_t fair;
    memset(&zero, 0, sizeof(zero));
    memset(&garbage, 0xff, sizeof(garbage));
    ck_assert_int_eq(rlock_rwlockattr_init(&gone), 0);
    ck_assert_int_eq(rlock_rwlockattr_destroy(&gone), 0);
    rlock_rwlockattr_t *as_rwattr = (rlock_rwlockattr_t *)(void *)&attr;
    rlock_mutexattr_t *as_attr = (rlock_mutexattr_t *)(void *)&rwattr;
    rlock_rwlockattr_t *bad[] = { NULL, &zero, &garbage, &gone, as_rwattr };
    for (int i = 0; i < 5; i++) {
        int value = -12345;
        ck_assert_int_eq(rwrows[_i].set(bad[i], rwrows[_i].good[0]), EINVAL);
        ck_assert_int_eq(rwrows[_i].get(bad[i], &value), EINVAL);
        ck_assert_int_eq(value, -12345);
        ck_assert_int_eq(rlock_rwlockattr_setclient(bad[i], NULL), EINVAL);
        ck_assert_int_eq(rlock_rwlockattr_destroy(bad[i]), EINVAL);
        if (bad[i])
            ck_assert_int_eq(rlock_rwlock_init(&rwlock, bad[i], "n"), EINVAL);
    }
    ck_assert_int_eq(rwrows[_i].get(&rwattr, NULL), EINVAL);
    ck_assert_int_eq(rlock_rwlockattr_init(NULL), EINVAL);
    ck_assert_int_eq(rlock_mutex_init(&mutex, as_attr, "n"), EINVAL);
    ck_assert_int_eq(rlock_fair_init(&fair, as_attr, "n"), EINVAL);
    ck_assert_int_eq(rlock_mutexattr_setfencing(as_attr, 1), EINVAL);
    ck_assert_int_eq(rlock_mutexattr_destroy(as_attr), EINVAL);
    ck_assert_int_eq(rlock_rwlock_init(&rwlock, &rwattr, "n"), 0);
    ck_assert_int_eq(rlock_rwlock_destroy(&rwlock), 0);
}
END_TEST

START_TEST(rwlockattr_client_is_an_open_one_of_this_process)
{
    rlock_client_t *client = NULL, *got = NULL;
    rlock_rwlock_t rwlock;
    ck_assert_int_eq(rlock_rwlockattr_getclient(&rwattr, &got), 0);
    ck_assert_ptr_null(got);
    ck_assert_int_eq(rlock_client_open(&client, "unix:///nonexistent", NULL), 0);
    ck_assert_int_eq(rlock_rwlockattr_setclient(&rwattr, client), 0);
    ck_assert_int_eq(rlock_rwlockattr_getclient(&rwattr, &got), 0);
    ck_assert_ptr_eq(got, client);
    ck_assert_int_eq(rlock_rwlockattr_getclient(&rwattr, NULL), EINVAL);
    ck_assert_int_eq(rlock_rwlockattr_setpshared(&rwattr, RLOCK_PROCESS_SHARED), 0);
    ck_assert_int_eq(rlock_rwlock_init(&rwlock, &rwattr, "n"), ENOTSUP);
    ck_assert_int_eq(rlock_rwlockattr_setpshared(&rwattr, RLOCK_PROCESS_PRIVATE), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
    ck_assert_int_eq(rlock_rwlock_init(&rwlock, &rwattr, "n"), EINVAL);
    ck_assert_int_eq(rlock_rwlockattr_getclient(&rwattr, &got), EINVAL);
    ck_assert_int_eq(rlock_rwlockattr_setclient(&rwattr, client), EINVAL);
}
END_TEST

/* ---- attributes of clients */

typedef int (*cset_fn)(rlock_clientattr_t *attr, long value);
typedef int (*cget_fn)(const rlock_clientattr_t *attr, long *ret_value);

static const struct {
    const char *name;
    cset_fn set;
    cget_fn get;
    long initial, min, max;
} longs[] = {
    { "lease", rlock_clientattr_setlease, rlock_clientattr_getlease, 30000, 50,
      86400000 },
    { "presence", rlock_clientattr_setpresence, rlock_clientattr_getpresence, 3000, 100,
      30000 },
    { "commandtimeout", rlock_clientattr_setcommandtimeout,
      rlock_clientattr_getcommandtimeout, 3000, 10, 3600000 },
    { "connecttimeout", rlock_clientattr_setconnecttimeout,
      rlock_clientattr_getconnecttimeout, 3000, 10, 3600000 },
    { "handoffms", rlock_clientattr_sethandoffms, rlock_clientattr_gethandoffms, 10, 0,
      86400000 },
    { "retain", rlock_clientattr_setretain, rlock_clientattr_getretain, 0, 0, 86400000 },
    { "maxskew", rlock_clientattr_setmaxskew, rlock_clientattr_getmaxskew, -1, -1,
      10000 },
};
enum { LONGS = sizeof(longs) / sizeof(longs[0]) };

START_TEST(clientattr_stores_values_in_range)
{
    long values[] = { longs[_i].min, longs[_i].max, longs[_i].initial }, value = -7;
    ck_assert_int_eq(longs[_i].get(&cattr, &value), 0);
    ck_assert_int_eq(value, longs[_i].initial);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(longs[_i].set(&cattr, values[i]), 0);
        ck_assert_int_eq(longs[_i].get(&cattr, &value), 0);
        ck_assert_int_eq(value, values[i]);
        for (int other = 0; other < LONGS; other++) {
            if (other == _i)
                continue;
            ck_assert_int_eq(longs[other].get(&cattr, &value), 0);
            ck_assert_int_eq(value, longs[other].initial);
        }
    }
}
END_TEST

START_TEST(clientattr_refuses_values_out_of_range)
{
    long values[] = { longs[_i].min - 1, longs[_i].max + 1, longs[_i].min / 2 - 1, -1,
                      LONG_MAX,          LONG_MIN };
    rlock_clientattr_t before = cattr;
    for (int i = 0; i < 6; i++) {
        if (values[i] >= longs[_i].min && values[i] <= longs[_i].max)
            continue;
        ck_assert_msg(longs[_i].set(&cattr, values[i]) == EINVAL, "%s %ld",
                      longs[_i].name, values[i]);
        ck_assert_int_eq(memcmp(&cattr, &before, sizeof(cattr)), 0);
    }
    ck_assert_int_eq(longs[_i].get(&cattr, NULL), EINVAL);
}
END_TEST

START_TEST(maxconnections_is_1_to_10000)
{
    int value = -7, good[] = { 1, 10000, 16 }, bad[] = { 0, -1, 10001, INT_MAX, INT_MIN };
    ck_assert_int_eq(rlock_clientattr_getmaxconnections(&cattr, &value), 0);
    ck_assert_int_eq(value, 16);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(rlock_clientattr_setmaxconnections(&cattr, good[i]), 0);
        ck_assert_int_eq(rlock_clientattr_getmaxconnections(&cattr, &value), 0);
        ck_assert_int_eq(value, good[i]);
    }
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(rlock_clientattr_setmaxconnections(&cattr, bad[i]), EINVAL);
    ck_assert_int_eq(rlock_clientattr_getmaxconnections(&cattr, &value), 0);
    ck_assert_int_eq(value, 16);
    ck_assert_int_eq(rlock_clientattr_getmaxconnections(&cattr, NULL), EINVAL);
}
END_TEST

START_TEST(handoffcount_is_0_to_a_billion)
{
    int value = -7, good[] = { 0, 1000000000, 1000 },
        bad[] = { -1, 1000000001, INT_MAX, INT_MIN };
    ck_assert_int_eq(rlock_clientattr_gethandoffcount(&cattr, &value), 0);
    ck_assert_int_eq(value, 1000);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(rlock_clientattr_sethandoffcount(&cattr, good[i]), 0);
        ck_assert_int_eq(rlock_clientattr_gethandoffcount(&cattr, &value), 0);
        ck_assert_int_eq(value, good[i]);
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(rlock_clientattr_sethandoffcount(&cattr, bad[i]), EINVAL);
    ck_assert_int_eq(rlock_clientattr_gethandoffcount(&cattr, &value), 0);
    ck_assert_int_eq(value, 1000);
    ck_assert_int_eq(rlock_clientattr_gethandoffcount(&cattr, NULL), EINVAL);
}
END_TEST

START_TEST(guard_is_off_on_or_always)
{
    int value = -7, bad[] = { -1, 3, INT_MAX };
    ck_assert_int_eq(rlock_clientattr_getguard(&cattr, &value), 0);
    ck_assert_int_eq(value, RLOCK_GUARD_ON);
    for (int guard = RLOCK_GUARD_OFF; guard <= RLOCK_GUARD_ALWAYS; guard++) {
        ck_assert_int_eq(rlock_clientattr_setguard(&cattr, guard), 0);
        ck_assert_int_eq(rlock_clientattr_getguard(&cattr, &value), 0);
        ck_assert_int_eq(value, guard);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(rlock_clientattr_setguard(&cattr, bad[i]), EINVAL);
    ck_assert_int_eq(rlock_clientattr_getguard(&cattr, &value), 0);
    ck_assert_int_eq(value, RLOCK_GUARD_ALWAYS);
    ck_assert_int_eq(rlock_clientattr_getguard(&cattr, NULL), EINVAL);
}
END_TEST

START_TEST(replicas_are_0_to_1000_and_waitaof_is_0_or_1)
{
    int value = -7, good[] = { 0, 1, 1000 }, bad[] = { -1, 1001, INT_MAX, INT_MIN };
    ck_assert_int_eq(rlock_clientattr_getreplicas(&cattr, &value), 0);
    ck_assert_int_eq(value, 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(rlock_clientattr_setreplicas(&cattr, good[i]), 0);
        ck_assert_int_eq(rlock_clientattr_getreplicas(&cattr, &value), 0);
        ck_assert_int_eq(value, good[i]);
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(rlock_clientattr_setreplicas(&cattr, bad[i]), EINVAL);
    ck_assert_int_eq(rlock_clientattr_getwaitaof(&cattr, &value), 0);
    ck_assert_int_eq(value, 0);
    ck_assert_int_eq(rlock_clientattr_setwaitaof(&cattr, 1), 0);
    ck_assert_int_eq(rlock_clientattr_setwaitaof(&cattr, 2), EINVAL);
    ck_assert_int_eq(rlock_clientattr_setwaitaof(&cattr, -1), EINVAL);
    ck_assert_int_eq(rlock_clientattr_getwaitaof(&cattr, &value), 0);
    ck_assert_int_eq(value, 1);
    ck_assert_int_eq(rlock_clientattr_getreplicas(&cattr, NULL), EINVAL);
    ck_assert_int_eq(rlock_clientattr_getwaitaof(&cattr, NULL), EINVAL);
}
END_TEST

START_TEST(mutextype_is_a_type)
{
    int value = -7, bad[] = { -1, 4, INT_MAX };
    ck_assert_int_eq(rlock_clientattr_getmutextype(&cattr, &value), 0);
    ck_assert_int_eq(value, RLOCK_MUTEX_RECURSIVE);
    for (int type = 0; type <= RLOCK_MUTEX_ADAPTIVE_NP; type++) {
        ck_assert_int_eq(rlock_clientattr_setmutextype(&cattr, type), 0);
        ck_assert_int_eq(rlock_clientattr_getmutextype(&cattr, &value), 0);
        ck_assert_int_eq(value, type);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(rlock_clientattr_setmutextype(&cattr, bad[i]), EINVAL);
    ck_assert_int_eq(value, RLOCK_MUTEX_ADAPTIVE_NP);
    ck_assert_int_eq(rlock_clientattr_getmutextype(&cattr, NULL), EINVAL);
}
END_TEST

START_TEST(credentials_are_bounded_and_wiped)
{
    char user[300], password[2100];
    memset(user, 'u', sizeof(user));
    memset(password, 'p', sizeof(password));
    user[256] = password[2047] = '\0';
    ck_assert_int_eq(rlock_clientattr_setcredentials(&cattr, user, password),
                     ENAMETOOLONG);
    user[255] = '\0';
    ck_assert_int_eq(rlock_clientattr_setcredentials(&cattr, user, password), 0);
    rlock_clientattr_t before = cattr;
    password[2047] = 'p';
    password[2048] = '\0';
    ck_assert_int_eq(rlock_clientattr_setcredentials(&cattr, "u", password),
                     ENAMETOOLONG);
    ck_assert_int_eq(memcmp(&cattr, &before, sizeof(cattr)), 0);
    ck_assert_int_eq(rlock_clientattr_setcredentials(&cattr, NULL, "short"), 0);
    ck_assert_ptr_null(
        memmem(&cattr, sizeof(cattr), "pppp", 4)); /* no part of the longer one */
    ck_assert_ptr_null(memmem(&cattr, sizeof(cattr), "uuuu", 4));
    ck_assert_int_eq(rlock_clientattr_setcredentials(&cattr, "", "short"), 0);
    ck_assert_int_eq(rlock_clientattr_setcredentials(&cattr, NULL, NULL), 0);
    ck_assert_ptr_null(memmem(&cattr, sizeof(cattr), "short", 5));
    ck_assert_int_eq(rlock_clientattr_setcredentials(&cattr, "me", "hidden"), 0);
    ck_assert_int_eq(rlock_clientattr_destroy(&cattr), 0);
    ck_assert_ptr_null(memmem(&cattr, sizeof(cattr), "hidden", 6));
}
END_TEST

static void on_event(const rlock_event_t *event, void *arg)
{
    (void)event;
    (void)arg;
}

START_TEST(callback_may_be_set_and_taken_back)
{
    ck_assert_int_eq(rlock_clientattr_seteventcallback(&cattr, on_event, &cattr), 0);
    ck_assert_int_eq(rlock_clientattr_seteventcallback(&cattr, NULL, NULL), 0);
}
END_TEST

START_TEST(attributes_of_TLS_are_texts_of_1500_bytes_together)
{
    char path[1600];
    int verify = 7;
    if (!rlk_tls_is_built()) {
        ck_assert_int_eq(rlock_clientattr_setcafile(&cattr, "ca.pem"), ENOTSUP);
        ck_assert_int_eq(rlock_clientattr_setverify(&cattr, 0), ENOTSUP);
        return;
    }
    memset(path, 'p', sizeof(path));
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(rlock_clientattr_setcafile(&cattr, path), ENAMETOOLONG);
    path[1200] = '\0';
    ck_assert_int_eq(rlock_clientattr_setcafile(&cattr, path), 0);
    ck_assert_int_eq(rlock_clientattr_setcadir(&cattr, path), ENAMETOOLONG);
    path[290] = '\0';
    ck_assert_int_eq(rlock_clientattr_setkeyfile(&cattr, path), 0);
    ck_assert_int_eq(rlock_clientattr_setcafile(&cattr, ""), 0);
    path[290] = 'p';
    path[1200] = '\0';
    ck_assert_int_eq(rlock_clientattr_setcertfile(&cattr, path), 0);
    ck_assert_int_eq(rlock_clientattr_settlsname(&cattr, "n"), 0);
    ck_assert_int_eq(rlock_clientattr_setverify(&cattr, 2), EINVAL);
    ck_assert_int_eq(rlock_clientattr_getverify(&cattr, &verify), 0);
    ck_assert_int_eq(verify, RLOCK_VERIFY_FULL);
    ck_assert_int_eq(rlock_clientattr_setverify(&cattr, RLOCK_VERIFY_CA), 0);
    ck_assert_int_eq(rlock_clientattr_getverify(&cattr, &verify), 0);
    ck_assert_int_eq(verify, RLOCK_VERIFY_CA);
}
END_TEST

/* rule: P10 */
START_TEST(credentials_of_sentinels_replace_both)
{
    char password[1600];

    memset(password, 'p', sizeof(password));
    password[sizeof(password) - 1] = '\0';
    ck_assert_int_eq(rlock_clientattr_setsentinelcredentials(&cattr, "u", password),
                     ENAMETOOLONG);
    ck_assert_ptr_null(rlk_texts_get(cattr.rlk_texts, RLK_URL_SENTINELUSER));
    password[1400] = '\0';
    ck_assert_int_eq(rlock_clientattr_setsentinelcredentials(&cattr, "u", password), 0);
    password[1400] = 'p';
    ck_assert_int_eq(rlock_clientattr_setsentinelcredentials(&cattr, "v", password),
                     ENAMETOOLONG);
    ck_assert_str_eq(rlk_texts_get(cattr.rlk_texts, RLK_URL_SENTINELUSER), "u");
    ck_assert_int_eq(rlock_clientattr_setsentinelcredentials(&cattr, NULL, "q"), 0);
    ck_assert_ptr_null(rlk_texts_get(cattr.rlk_texts, RLK_URL_SENTINELUSER));
    ck_assert_str_eq(rlk_texts_get(cattr.rlk_texts, RLK_URL_SENTINELPASSWORD), "q");
    ck_assert_int_eq(rlock_clientattr_setsentinelcredentials(&cattr, "u", ""), EINVAL);
    ck_assert_int_eq(rlock_clientattr_setsentinelcredentials(&cattr, "", ""), 0);
    ck_assert_int_eq(rlock_clientattr_setaddressmap(&cattr, "a>b"), 0);
    ck_assert_int_eq(rlock_clientattr_setaddressmap(&cattr, password), ENAMETOOLONG);
    ck_assert_ptr_null(rlk_texts_get(cattr.rlk_texts, RLK_URL_SENTINELPASSWORD));
}
END_TEST

START_TEST(clientattr_that_is_none_is_EINVAL)
{
    rlock_clientattr_t zero, garbage, gone;
    rlock_client_t *client = NULL;
    memset(&zero, 0, sizeof(zero));
    memset(&garbage, 0xff, sizeof(garbage));
    ck_assert_int_eq(rlock_clientattr_init(&gone), 0);
    ck_assert_int_eq(rlock_clientattr_destroy(&gone), 0);
    rlock_clientattr_t *bad[] = { NULL, &zero, &garbage, &gone };
    for (int i = 0; i < 4; i++) {
        rlock_clientattr_t *a = bad[i];
        long ms = 7;
        int value = 7;
        for (int row = 0; row < LONGS; row++) {
            ck_assert_int_eq(longs[row].set(a, longs[row].initial), EINVAL);
            ck_assert_int_eq(longs[row].get(a, &ms), EINVAL);
        }
        ck_assert_int_eq(rlock_clientattr_setmaxconnections(a, 1), EINVAL);
        ck_assert_int_eq(rlock_clientattr_getmaxconnections(a, &value), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setmutextype(a, 1), EINVAL);
        ck_assert_int_eq(rlock_clientattr_getmutextype(a, &value), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setreplicas(a, 1), EINVAL);
        ck_assert_int_eq(rlock_clientattr_getreplicas(a, &value), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setwaitaof(a, 1), EINVAL);
        ck_assert_int_eq(rlock_clientattr_getwaitaof(a, &value), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setcredentials(a, "a", "b"), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setsentinelcredentials(a, "a", "b"), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setaddressmap(a, "a>b"), EINVAL);
        ck_assert_int_eq(rlock_clientattr_seteventcallback(a, on_event, NULL), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setcafile(a, "x"), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setcertfile(a, "x"), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setkeyfile(a, "x"), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setcadir(a, "x"), EINVAL);
        ck_assert_int_eq(rlock_clientattr_settlsname(a, "x"), EINVAL);
        ck_assert_int_eq(rlock_clientattr_setverify(a, 0), EINVAL);
        ck_assert_int_eq(rlock_clientattr_getverify(a, &value), EINVAL);
        ck_assert_int_eq(rlock_clientattr_destroy(a), EINVAL);
        ck_assert(ms == 7 && value == 7);
        if (!a)
            continue; /* NULL means defaults to that function */
        ck_assert_int_eq(rlock_client_open(&client, NULL, a), EINVAL);
        ck_assert_int_eq(rlock_client_setdefault(NULL, a), EINVAL);
    }
    ck_assert_ptr_null(client);
    ck_assert_int_eq(rlock_mutexattr_init(NULL), EINVAL);
    ck_assert_int_eq(rlock_clientattr_init(NULL), EINVAL);
}
END_TEST

START_TEST(errno_is_left_alone)
{
    long ms;
    int value;
    errno = 12345;
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_settype(&attr, 77);
    rlock_mutexattr_gettype(&attr, &value);
    rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST);
    rlock_mutexattr_destroy(NULL);
    rlock_rwlockattr_init(&rwattr);
    rlock_rwlockattr_setkind_np(&rwattr, 77);
    rlock_rwlockattr_getkind_np(&rwattr, &value);
    rlock_rwlockattr_destroy(NULL);
    rlock_clientattr_init(&cattr);
    rlock_clientattr_setlease(&cattr, 1);
    rlock_clientattr_getlease(&cattr, &ms);
    rlock_clientattr_setcafile(&cattr, "x");
    rlock_clientattr_destroy(&cattr);
    ck_assert_int_eq(errno, 12345);
}
END_TEST

START_TEST(sizes_are_those_of_the_ABI)
{
    ck_assert_uint_eq(sizeof(rlock_mutex_t), 256);
    ck_assert_uint_eq(sizeof(rlock_mutexattr_t), 128);
    ck_assert_uint_eq(sizeof(rlock_rwlock_t), 256);
    ck_assert_uint_eq(sizeof(rlock_rwlockattr_t), 128);
    ck_assert_uint_eq(sizeof(rlock_clientattr_t), 4096);
    ck_assert_uint_eq(sizeof(rlock_stats_t), 4096);
    ck_assert_int_eq(RLOCK_MUTEX_RECURSIVE, PTHREAD_MUTEX_RECURSIVE);
    ck_assert_int_eq(RLOCK_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ERRORCHECK);
    ck_assert_int_eq(RLOCK_MUTEX_NORMAL, PTHREAD_MUTEX_NORMAL);
    ck_assert_int_eq(RLOCK_MUTEX_ROBUST, PTHREAD_MUTEX_ROBUST);
    ck_assert_int_eq(RLOCK_PROCESS_SHARED, PTHREAD_PROCESS_SHARED);
    ck_assert_int_eq(RLOCK_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_READER_NP);
    ck_assert_int_eq(RLOCK_RWLOCK_PREFER_WRITER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP);
    ck_assert_int_eq(RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP,
                     PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    ck_assert_int_eq(RLOCK_RWLOCK_DEFAULT_NP, PTHREAD_RWLOCK_DEFAULT_NP);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attr");
    TCase *tc = tcase_create("mutex");
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_loop_test(tc, mutexattr_has_its_initial_value, 0, ROWS);
    tcase_add_loop_test(tc, mutexattr_stores_set_values, 0, ROWS);
    tcase_add_loop_test(tc, mutexattr_refuses_and_stays_as_it_was, 0, ROWS);
    tcase_add_loop_test(tc, mutexattr_that_is_none_is_EINVAL, 0, ROWS);
    tcase_add_test(tc, mutexattr_lease_takes_a_long);
    tcase_add_test(tc, prioceiling_is_ENOTSUP);
    tcase_add_test(tc, mutexattr_client_is_an_open_one);
    suite_add_tcase(suite, tc);

    tc = tcase_create("rwlock");
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_loop_test(tc, rwlockattr_stores_set_values, 0, RWROWS);
    tcase_add_loop_test(tc, rwlockattr_refuses_and_stays_as_it_was, 0, RWROWS);
    tcase_add_loop_test(tc, rwlockattr_that_is_none_is_EINVAL, 0, RWROWS);
    tcase_add_test(tc, rwlockattr_client_is_an_open_one_of_this_process);
    suite_add_tcase(suite, tc);

    tc = tcase_create("client");
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_loop_test(tc, clientattr_stores_values_in_range, 0, LONGS);
    tcase_add_loop_test(tc, clientattr_refuses_values_out_of_range, 0, LONGS);
    tcase_add_test(tc, maxconnections_is_1_to_10000);
    tcase_add_test(tc, handoffcount_is_0_to_a_billion);
    tcase_add_test(tc, guard_is_off_on_or_always);
    tcase_add_test(tc, replicas_are_0_to_1000_and_waitaof_is_0_or_1);
    tcase_add_test(tc, mutextype_is_a_type);
    tcase_add_test(tc, credentials_are_bounded_and_wiped);
    tcase_add_test(tc, callback_may_be_set_and_taken_back);
    tcase_add_test(tc, attributes_of_TLS_are_texts_of_1500_bytes_together);
    tcase_add_test(tc, credentials_of_sentinels_replace_both);
    tcase_add_test(tc, clientattr_that_is_none_is_EINVAL);
    tcase_add_test(tc, errno_is_left_alone);
    tcase_add_test(tc, sizes_are_those_of_the_ABI);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
