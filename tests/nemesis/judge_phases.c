/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds of L6 (W14) of read-write locks: reading and writing alternate. */
#include "judge_line.h"

#include <string.h>

/* A writer that waited before this transaction and that the server had to find alive. */
static const struct nem_waiter *live_writer(const struct nem_judge *j,
                                            const struct nem_line *line,
                                            const struct nem_entry *entry)
{
    for (size_t i = 0; i < line->waiter_count; i++) {
        const struct nem_waiter *w = &line->waiters[i];
        if (!w->reading && !w->gone && nem_waits(j, line, w, entry))
            return w;
    }
    return NULL;
}

/* ---- reads: past a waiting writer */

/* A process that reads already may read once more by an extend to a fixed lease: then no
 * thread got the new id by a request to read. */
static bool reads_already(const struct nem_judge *j, const struct nem_line *line,
                          const char *id)
{
    const struct nem_name *name = nem_name_find(j, id);
    if (name && name->holds)
        return false;
    for (size_t i = 0; i < line->holder_count; i++)
        if (line->holders[i].reading && nem_same_client(line->holders[i].id, id))
            return true;
    return false;
}

/* Whether the reader was queued when the readers' turn began. */
static bool was_in_time(const struct nem_line *line, const struct nem_entry *entry)
{
    const struct nem_waiter *reader = nem_waiter_find(line, entry->id);
    return reader && reader->queued->transaction <= line->turn_transaction;
}

static void judge_read(struct nem_judge *j, const struct nem_line *line,
                       const struct nem_entry *entry)
{
    const struct nem_waiter *writer = live_writer(j, line, entry);
    if (!writer)
        return;
    nem_judged(j, NEM_RULE_READS);
    if (was_in_time(line, entry) || reads_already(j, line, entry->id))
        return;
    NEM_BREAKS(j, NEM_RULE_READS, entry->lock,
               nem_keys_lost(j, entry->lock, line->turn_from, entry->before),
               "%s read between %.3f and %.3f ms; readers' turn began after %.3f ms, and "
               "%s waited since %.3f ms to write",
               entry->id, nem_ms(j, entry->after), nem_ms(j, entry->before),
               nem_ms(j, line->turn_from), writer->queued->id,
               nem_ms(j, writer->queued->before));
}

/* A reading begins. It belongs to the same turn of readers if a reading ended while a
 * writer waited. */
static void begin_turn(const struct nem_judge *j, struct nem_line *line,
                       const struct nem_entry *entry, bool downgraded)
{
    if (line->readers_turn && !downgraded && live_writer(j, line, entry))
        return;
    line->readers_turn = true;
    line->turn_transaction = entry->transaction;
    line->turn_from = entry->after;
}

/* ---- writes: past a waiting reader */

static void judge_write(struct nem_judge *j, struct nem_line *line,
                        const struct nem_entry *entry)
{
    for (size_t i = 0; i < line->waiter_count; i++) {
        struct nem_waiter *w = &line->waiters[i];
        if (!w->reading || w->gone)
            continue;
        bool live = nem_waits(j, line, w, entry) &&
                    !nem_deaf(j, w->life->process, w->writers_from, entry->before) &&
                    !nem_keys_lost(j, entry->lock, w->writers_from, entry->before);
        w->writers = live ? w->writers + 1 : 0;
        if (!live) {
            w->writers_from = entry->after;
            continue;
        }
        nem_judged(j, NEM_RULE_WRITES);
        if (w->writers > 1)
            nem_violation(j, NEM_RULE_WRITES, entry->lock,
                          "%s writes between %.3f and %.3f ms, the %uth writer since %s "
                          "waits to read, from %.3f ms on",
                          entry->id, nem_ms(j, entry->after), nem_ms(j, entry->before),
                          w->writers, w->queued->id, nem_ms(j, w->writers_from));
    }
}

void nem_judge_phases(struct nem_judge *j, struct nem_line *line,
                      const struct nem_step *step)
{
    const struct nem_entry *opened = NULL;
    for (size_t i = 0; i < step->count; i++) {
        const struct nem_entry *entry = &step->first[i];
        bool downgraded = entry->change == NEM_DOWNGRADED;
        if (entry->change == NEM_GRANTED) {
            line->readers_turn = false;
            judge_write(j, line, entry);
        }
        if ((downgraded || (entry->change == NEM_READ && entry->value != 0)) && !opened) {
            opened = entry;
            begin_turn(j, line, entry, downgraded);
        }
        if (entry->change == NEM_READ)
            judge_read(j, line, entry);
    }
}
