/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The masters of a cluster, one after the other, and what they say of the cluster. The
 * findings of all masters are collected first: what all say is reported once, and what
 * only some say is reported with their addresses. Thread: any. Blocks: network, as for
 * one server, for each master.
 */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "client/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_MAX = 4,      /* addresses in one text */
    NAMES_SIZE = 640,   /* with room for these */
    ELECTION_MS = 2000, /* from the failure of a master to the next one, beside the node
                           timeout: a second for the delays of an election, and another
                           one for the client to learn of it */
    SKEW_NOISE_MS = 50
};

/* ---- what the masters say */

struct note {
    int severity;
    const char *topic, *format;
    char *text;
    bool alike;    /* others said the same with other numbers */
    size_t count;  /* how many masters said it, and */
    uint16_t *who; /* which; indexes of the masters */
};

struct rlk_diagnose_notes {
    const struct rlk_masters *masters;
    size_t at; /* the master that is asked */
    struct note *each;
    size_t count;
};

/* Topics whose numbers are never the same. */
static bool is_measured(const char *topic)
{
    static const char *const measured[] = { "memory", "connections", "clock",
                                            "round trip" };

    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++)
        if (strcmp(topic, measured[i]) == 0)
            return true;
    return false;
}

static struct note *find(struct rlk_diagnose_notes *notes, int severity,
                         const char *topic, const char *format, const char *text)
{
    for (size_t i = 0; i < notes->count; i++) {
        struct note *note = &notes->each[i];
        if (note->severity != severity || strcmp(note->topic, topic) != 0)
            continue;
        if (strcmp(note->text, text) == 0)
            return note;
        if (severity == LOG_INFO && note->format == format && is_measured(topic)) {
            note->alike = true;
            return note;
        }
    }
    return NULL;
}

/* NULL: out of memory. */
static struct note *add(struct rlk_diagnose_notes *notes, int severity, const char *topic,
                        const char *format, const char *text)
{
    struct note *more = realloc(notes->each, (notes->count + 1) * sizeof(*notes->each));

    if (!more)
        return NULL;
    notes->each = more;
    struct note *note = &more[notes->count];
    *note = (struct note){ .severity = severity, .topic = topic, .format = format };
    note->text = strdup(text);
    note->who = calloc(notes->masters->count, sizeof(*note->who));
    notes->count++;
    return note->text && note->who ? note : NULL;
}

int rlk_diagnose_note(struct rlk_diagnosis *d, int severity, const char *topic,
                      const char *format, const char *text)
{
    struct rlk_diagnose_notes *notes = d->notes;
    struct note *note = find(notes, severity, topic, format, text);

    if (!note)
        note = add(notes, severity, topic, format, text);
    if (!note)
        return rlk_error_set(ENOMEM, "out of memory");
    if (note->count == 0 || note->who[note->count - 1] != notes->at)
        note->who[note->count++] = (uint16_t)notes->at;
    return 0;
}

static void free_notes(struct rlk_diagnose_notes *notes)
{
    for (size_t i = 0; i < notes->count; i++) {
        free(notes->each[i].text);
        free(notes->each[i].who);
    }
    free(notes->each);
}

/* "a:1, b:2 and 3 more" */
static void write_names(const struct rlk_diagnose_notes *notes, const struct note *note,
                        char buf[NAMES_SIZE])
{
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < note->count && i < SHOWN_MAX; i++)
        len +=
            (size_t)snprintf(buf + len, NAMES_SIZE - len, "%s%.128s", i == 0 ? "" : ", ",
                             notes->masters->each[note->who[i]]->endpoint->label);
    if (note->count > SHOWN_MAX)
        snprintf(buf + len, NAMES_SIZE - len, " and %zu more", note->count - SHOWN_MAX);
}

static int tell_note(struct rlk_diagnosis *d, const struct rlk_diagnose_notes *notes,
                     const struct note *note)
{
    char names[NAMES_SIZE];
    bool by_all = note->count == notes->masters->count;

    if (by_all && !note->alike)
        return rlk_diagnose_tell(d, note->severity, note->topic, "%s", note->text);
    if (note->alike)
        return rlk_diagnose_tell(d, note->severity, note->topic,
                                 "%s, and much the same at %zu more: %s",
                                 notes->masters->each[note->who[0]]->endpoint->label,
                                 note->count - 1, note->text);
    write_names(notes, note, names);
    return rlk_diagnose_tell(d, note->severity, note->topic, "%s: %s", names, note->text);
}

/* ---- one master */

/* A node has told how many hash slots are served, as far as it knows. */
static void note_assigned(struct rlk_diagnosis *d, long count)
{
    long uncovered = RLK_HASH_SLOTS - count;

    if (uncovered >= 0 && (!d->knows_uncovered || uncovered > d->uncovered))
        d->uncovered = uncovered;
    d->knows_uncovered = true;
}

/* Whether the node serves its hash slots, in its own eyes. */
static int tell_state(struct rlk_diagnosis *d)
{
    static const char *const argv[] = { "CLUSTER", "INFO", NULL };
    char state[RLK_FACT_SIZE] = "", failed[RLK_FACT_SIZE] = "0", number[RLK_FACT_SIZE];
    struct rlk_reply *reply;
    size_t len;

    int rc = rlk_diagnose_command(d, argv, RLK_REPLY_STRING, &reply);
    if (rc != 0)
        return rc;
    const char *text = reply ? rlk_reply_string(reply, &len) : NULL;
    rlk_diagnose_find(text, "cluster_state", state);
    rlk_diagnose_find(text, "cluster_slots_fail", failed);
    if (rlk_diagnose_find(text, "cluster_slots_assigned", number))
        note_assigned(d, strtol(number, NULL, 10));
    rlk_reply_free(reply);
    if (state[0] == '\0')
        return rlk_diagnose_tell(d, LOG_NOTICE, "cluster",
                                 "Whether the node sees the cluster in order is unknown: "
                                 "it refuses CLUSTER INFO.");
    if (strcmp(state, "ok") == 0)
        return rlk_diagnose_tell(
            d, LOG_INFO, "cluster",
            "The node sees the cluster in order (cluster_state ok).");
    return rlk_diagnose_tell(
        d, LOG_ERR, "cluster",
        "The node takes the cluster for down (cluster_state %s, hash slots of failed "
        "nodes: %s) and refuses all locks (CLUSTERDOWN). It misses the majority of the "
        "masters, or a hash slot that no node serves: see CLUSTER NODES there.",
        state, failed);
}

static int tell_coverage(struct rlk_diagnosis *d)
{
    long long full = rlk_diagnose_number(d, NULL, "cluster-require-full-coverage");
    long long shards =
        rlk_diagnose_number(d, NULL, "cluster-allow-pubsubshard-when-down");
    int rc;

    if (full < 0)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "cluster",
            "Whether one failed master stops the locks of the others "
            "is unknown: the server does not show "
            "cluster-require-full-coverage by CONFIG GET.");
    if (full == 0)
        rc = rlk_diagnose_tell(d, LOG_INFO, "cluster",
                               "While a hash slot is served by no node, the locks of all "
                               "others work (cluster-require-full-coverage no).");
    else
        rc = rlk_diagnose_tell(
            d, LOG_NOTICE, "cluster",
            "While one hash slot is served by no node, all nodes refuse all locks "
            "(cluster-require-full-coverage yes). With no, each lock depends on its own "
            "master alone.");
    if (rc == 0 && shards == 0)
        rc = rlk_diagnose_tell(d, LOG_NOTICE, "cluster",
                               "While the cluster is down, its nodes deliver no messages "
                               "of sharded channels "
                               "(cluster-allow-pubsubshard-when-down no): until it is up "
                               "again, waiters find "
                               "their grants by polling.");
    return rc;
}

static int tell_timeout(struct rlk_diagnosis *d)
{
    long long timeout = rlk_diagnose_number(d, NULL, "cluster-node-timeout");
    long lease = d->client->config.lease_ms,
         left = lease - lease / RLK_RENEWALS_PER_LEASE;

    if (timeout < 0)
        return 0; /* told with the other settings */
    if (timeout + ELECTION_MS > left)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "cluster",
            "The replica of a master that fails takes its place after some %lld ms "
            "(cluster-node-timeout %lld ms, and an election), but a hold may have only "
            "%ld ms left by then (of a lease of %ld ms): holders lose their locks in a "
            "failover. Use a longer lease, or a shorter cluster-node-timeout.",
            timeout + ELECTION_MS, timeout, left, lease);
    return rlk_diagnose_tell(
        d, LOG_INFO, "cluster",
        "A lease (%ld ms) outlasts a failover: the replica of a master that fails takes "
        "its place after some %lld ms (cluster-node-timeout %lld ms, and an election).",
        lease, timeout + ELECTION_MS, timeout);
}

int rlk_diagnose_cluster_node(struct rlk_diagnosis *d)
{
    int rc = tell_state(d);

    if (rc == 0)
        rc = tell_coverage(d);
    return rc == 0 ? tell_timeout(d) : rc;
}

static int tell_silent(struct rlk_diagnosis *d)
{
    return rlk_diagnose_tell(
        d, LOG_ERR, "cluster",
        "This master does not answer (%s): its locks can be neither taken nor renewed. "
        "If "
        "it has a replica that takes its place, this passes; else start it again.",
        rlk_error_message());
}

/* ---- the cluster */

static int tell_hash_slots(struct rlk_diagnosis *d, const struct rlk_masters *masters)
{
    long count = d->knows_uncovered ? d->uncovered : (long)rlk_masters_uncovered(masters);

    if (count == 0)
        return rlk_diagnose_tell(d, LOG_INFO, "cluster",
                                 "All hash slots are served, by %zu masters.",
                                 masters->count);
    return rlk_diagnose_tell(
        d, LOG_ERR, "cluster",
        "Hash slots that no node serves: %ld. No lock can be taken there, nor any other "
        "one with cluster-require-full-coverage yes. Give them to a node (redis-cli "
        "--cluster fix).",
        count);
}

/* rule: P21 */
static int tell_channels(struct rlk_diagnosis *d)
{
    const struct rlk_route *route = &d->client->route;

    if (atomic_load(&route->sharded))
        return rlk_diagnose_tell(d, LOG_INFO, "messages",
                                 "A message to a waiter stays at the node of its lock "
                                 "(sharded channels).");
    if (atomic_load(&route->shard_refused))
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "messages",
            "Each message to a waiter goes to all nodes, because the server refused this "
            "user a sharded channel. Allow the commands of doc/ACL.md, \"In a "
            "cluster\".");
    return rlk_diagnose_tell(
        d, LOG_NOTICE, "messages",
        "Each message to a waiter goes to all nodes: the servers know no sharded "
        "channels "
        "(before Redis 7.0), or refuse PUBSUB. Many hand-overs cost the network more.");
}

/* rule: P17 */
void rlk_diagnose_clock(struct rlk_diagnosis *d, int64_t offset_us)
{
    if (d->clocks == 0 || offset_us < d->clock_least)
        d->clock_least = offset_us;
    if (d->clocks == 0 || offset_us > d->clock_most)
        d->clock_most = offset_us;
    d->clocks++;
}

static int tell_clocks(struct rlk_diagnosis *d)
{
    long long apart = (d->clock_most - d->clock_least) / 1000;
    long bound = d->client->config.max_skew_ms;

    if (d->clocks < 2)
        return 0;
    if (apart > bound && apart > SKEW_NOISE_MS)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "skew",
            "The clocks of %u nodes are up to %lld ms apart: a failover, or a hash slot "
            "that moves, may end leases so much earlier, and maxskew allows for %ld ms. "
            "Synchronize the clocks, or set maxskew.",
            d->clocks, apart, bound);
    return rlk_diagnose_tell(d, LOG_INFO, "skew",
                             "The clocks of %u nodes are up to %lld ms apart, as far as "
                             "can be measured from here.",
                             d->clocks, apart);
}

/* Returns 0 also for a master that does not answer, which is a finding. */
static int look_at_master(struct rlk_diagnosis *d, int (*look)(struct rlk_diagnosis *))
{
    int64_t until = rlk_inspect_until(d->client);
    struct rlk_conn *conn;

    int rc = rlk_rpc_borrow_at(d->at, until, &conn);
    if (rc == 0) {
        rlk_diagnose_clock(d, rlk_conn_clock_offset_us(conn));
        rlk_rpc_put(d->at, conn);
        rc = look(d);
    }
    if (rc == ENOTCONN) {
        d->silent++;
        rc = tell_silent(d);
    }
    rlk_diagnose_forget(d);
    return rc;
}

static int look_at_all(struct rlk_diagnosis *d, const struct rlk_masters *masters,
                       int (*look)(struct rlk_diagnosis *))
{
    struct rlk_diagnose_notes notes = { .masters = masters };
    int rc = 0;

    d->notes = &notes;
    for (size_t i = 0; rc == 0 && i < masters->count; i++) {
        notes.at = i;
        d->at = masters->each[i];
        rc = look_at_master(d, look);
    }
    d->notes = NULL;
    d->at = NULL;
    if (rc == 0 && d->silent == masters->count)
        rc = ENOTCONN; /* with the last one's message */
    for (size_t i = 0; rc == 0 && i < notes.count; i++)
        rc = tell_note(d, &notes, &notes.each[i]);
    free_notes(&notes);
    return rc;
}

/* rule: P25 */
int rlk_diagnose_cluster(struct rlk_diagnosis *d, int (*look)(struct rlk_diagnosis *))
{
    struct rlk_masters masters;

    int rc = rlk_masters_get(d->client, rlk_inspect_until(d->client), &masters);
    if (rc != 0)
        return rc;
    rc = look_at_all(d, &masters, look);
    if (rc == 0)
        rc = tell_hash_slots(d, &masters);
    if (rc == 0)
        rc = tell_clocks(d);
    if (rc == 0)
        rc = tell_channels(d);
    rlk_masters_put(&masters);
    return rc;
}
