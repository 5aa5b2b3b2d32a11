/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlock watch on a terminal. The main thread draws and handles keys and signals. A second
 * thread looks at the server, because a look blocks while the server does not answer, and
 * keys must work all the same. It hands each list over in `looker` and writes a byte into
 * a pipe. Signals are blocked except in ppoll, so that none is missed between two waits.
 * Threads: main, and the looker.
 */
#include "watch.h"

#ifdef HAVE_NCURSES

#include "looker.h"
#include "table.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HEADER_LINES = 2, FOOTER_LINES = 1, ESCAPE_DELAY_MS = 25, CONTROL_L = 'L' & 0x1f };
/* A look that takes longer is shown with its duration. */
enum { MS_PER_S = 1000, SILENCE_MS = 1000 };

/* ---- the terminal */

static bool is_shown;
static volatile sig_atomic_t ended_by, stop_wanted;
static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };

static void on_signal(int sig)
{
    if (sig == SIGTSTP)
        stop_wanted = 1;
    else
        ended_by = sig;
}

/* Also at exit: a program that ends for lack of memory must restore the terminal. */
static void leave_screen(void)
{
    if (is_shown)
        endwin();
    is_shown = false;
}

/* Blocks all signals that may arrive in ppoll only; ignored ones stay ignored, as
 * SIGHUP under nohup. */
static void catch_signals(sigset_t *ret_before)
{
    struct sigaction before, action = { .sa_handler = on_signal };
    sigset_t blocked;

    sigemptyset(&action.sa_mask);
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
        sigaddset(&blocked, caught[i]);
        if (sigaction(caught[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(caught[i], &action, NULL);
    }
    sigaddset(&blocked, SIGWINCH);
    sigprocmask(SIG_BLOCK, &blocked, ret_before);
}

/* Restores the state from before catch_signals. */
static void release_signals(const sigset_t *before)
{
    struct sigaction action;

    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        if (sigaction(caught[i], NULL, &action) == 0 && action.sa_handler == on_signal)
            signal(caught[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* False: no such terminal, or its cursor cannot be moved. */
static bool enter_screen(void)
{
    SCREEN *screen = newterm(NULL, stdout, stdin);

    if (!screen)
        return false;
    const char *move = tigetstr("cup");
    if (!move || move == (const char *)-1) {
        endwin();
        return false;
    }
    is_shown = true;
    atexit(leave_screen);
    set_term(screen);
    set_escdelay(ESCAPE_DELAY_MS);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    return true;
}

/* Ctrl-Z. Not by curses' own handler, which would draw at any moment. */
static void stop_here(void)
{
    sigset_t stop;

    stop_wanted = 0;
    endwin();
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL); /* stops here, and continues here */
    sigprocmask(SIG_BLOCK, &stop, NULL);
    signal(SIGTSTP, on_signal);
    raise(SIGWINCH); /* the size may have changed unnoticed */
    clearok(curscr, TRUE);
}

/* ---- the contents */

struct view {
    struct look_list *list; /* the last complete one; NULL: none yet */
    struct tm seen, away;   /* when it was taken; since when the server is away */
    int64_t waits_ms;       /* the duration of the current look */
    long pause_ms;          /* between two looks, if longer than the interval; else 0 */
    bool is_away, refused;
    int code; /* of a refusal */
    char reason[LOOK_REASON_MAX];
    char **lines; /* of list, below the headings */
    size_t count, top;
    int width; /* the width of these lines */
};

static void drop_lines(struct view *view)
{
    for (size_t i = 0; i < view->count; i++)
        free(view->lines[i]);
    free(view->lines);
    view->lines = NULL;
    view->count = 0;
}

static void add_party(struct table *table, const char *name, const char *type,
                      const char *role, const rlock_party_t *party)
{
    char age[LOOK_TIME_SIZE], lease[LOOK_TIME_SIZE];
    char *who = look_who(party);

    table_add(table, (const char *const[]){ name, type, role, look_mode(party->mode), who,
                                            look_time(party->since_ms, age),
                                            look_lease(party->lease_left_ms, lease) });
    free(who);
}

static void add_lock(struct table *table, const rlock_info_t *lock)
{
    char *name = cli_printable(lock->name);

    for (size_t i = 0; i < lock->holder_count; i++)
        add_party(table, i == 0 ? name : "", i == 0 ? look_type(lock->type) : "", "holds",
                  &lock->holders[i]);
    for (size_t i = 0; i < lock->waiter_count; i++) {
        char role[LOOK_TIME_SIZE];
        snprintf(role, sizeof(role), "waits %zu", i + 1);
        add_party(table, "", "", role, &lock->waiters[i]);
    }
    free(name);
}

/* The first line has the headings. */
static void make_lines(struct view *view)
{
    enum { COLUMNS = 7, NAME = 1 << 0, CLIENT = 1 << 4 };
    struct table table = { .columns = COLUMNS, .cut = NAME | CLIENT, .clients = CLIENT };

    drop_lines(view);
    view->width = COLS;
    if (!view->list)
        return;
    table_add(&table, (const char *const[]){ "NAME", "TYPE", "", "MODE", "CLIENT", "FOR",
                                             "LEASE" });
    for (size_t i = 0; i < view->list->count; i++)
        add_lock(&table, view->list->locks[i]);
    view->lines = table_lines(&table, COLS > 0 ? (size_t)COLS : 1);
    view->count = table.rows;
    table_free(&table);
}

static struct tm time_of_day(void)
{
    time_t now = time(NULL);
    struct tm parts;

    localtime_r(&now, &parts);
    return parts;
}

/* Takes over the list. */
static void view_update(struct view *view, struct look_list *list)
{
    if (list->code != 0) {
        if (!view->is_away)
            view->away = time_of_day();
        view->is_away = true;
        view->refused = list->code != ENOTCONN;
        view->code = list->code;
        memcpy(view->reason, list->reason, sizeof(view->reason));
        looker_drop(list);
        return;
    }
    looker_drop(view->list);
    view->list = list;
    view->is_away = false;
    view->seen = time_of_day();
    make_lines(view);
}

/* Lines of the body that fit. */
static size_t page_of(void)
{
    return LINES > HEADER_LINES + FOOTER_LINES
               ? (size_t)(LINES - HEADER_LINES - FOOTER_LINES)
               : 1;
}

static size_t body_count(const struct view *view)
{
    return view->count > 0 ? view->count - 1 : 0;
}

static void scroll_to(struct view *view, long top)
{
    long last = (long)body_count(view) - (long)page_of();

    if (top > last)
        top = last;
    view->top = top > 0 ? (size_t)top : 0;
}

/* ---- drawing */

/* Draws one line, cut to the width; lines below the screen are not drawn. */
static void draw_line(int row, int attribute, const char *text)
{
    if (row >= LINES)
        return;
    attrset(attribute);
    mvaddnstr(row, 0, text, COLS);
    attrset(A_NORMAL);
}

static void draw_header(const struct view *view)
{
    enum { HEADER_MAX = 512 };
    char header[HEADER_MAX], at[LOOK_TIME_SIZE],
        more[LOOK_TIME_SIZE + 64] = "", pause[LOOK_TIME_SIZE];
    size_t locks = view->list ? view->list->count : 0;
    bool is_silent = view->waits_ms >= SILENCE_MS;

    if (is_silent)
        snprintf(more, sizeof(more), ", asking for %lld s",
                 (long long)view->waits_ms / MS_PER_S);
    else if (view->pause_ms > 0)
        snprintf(more, sizeof(more), ", a look every %s to spare the server",
                 look_time(view->pause_ms, pause));
    if (view->is_away) {
        strftime(at, sizeof(at), "%H:%M:%S", &view->away);
        snprintf(header, sizeof(header), "SERVER AWAY since %s, trying again: %s", at,
                 view->reason);
    } else if (view->list) {
        strftime(at, sizeof(at), "%H:%M:%S", &view->seen);
        snprintf(header, sizeof(header), "%s  %zu lock%s held%s", at, locks,
                 locks == 1 ? "" : "s", more);
    } else {
        snprintf(header, sizeof(header), "asking the server%s", more);
    }
    draw_line(0, view->is_away || is_silent ? A_REVERSE : A_BOLD, header);
}

static void draw_footer(const struct view *view, size_t page)
{
    enum { FOOTER_MAX = 128 };
    char footer[FOOTER_MAX];
    size_t count = body_count(view);
    size_t last = view->top + page < count ? view->top + page : count;

    if (LINES <= HEADER_LINES + FOOTER_LINES)
        return;
    if (count > page)
        snprintf(footer, sizeof(footer), "q quit  arrows, pages scroll  %zu-%zu of %zu",
                 view->top + 1, last, count);
    else
        snprintf(footer, sizeof(footer), "q quit");
    draw_line(LINES - 1, A_DIM, footer);
}

static void draw(struct view *view)
{
    if (view->width != COLS)
        make_lines(view);
    scroll_to(view, (long)view->top);
    size_t page = page_of(), count = body_count(view);
    erase();
    draw_header(view);
    if (view->count > 0)
        draw_line(1, A_UNDERLINE, view->lines[0]);
    for (size_t i = 0; i < page && view->top + i < count; i++)
        draw_line(HEADER_LINES + (int)i, A_NORMAL, view->lines[view->top + i + 1]);
    draw_footer(view, page);
    refresh();
}

/* ---- keys */

/* False: the end. */
static bool on_key(struct view *view, int key)
{
    long top = (long)view->top, page = (long)page_of();

    switch (key) {
    case 'q':
    case 'Q':
        return false;
    case KEY_UP:
    case 'k':
        scroll_to(view, top - 1);
        break;
    case KEY_DOWN:
    case 'j':
        scroll_to(view, top + 1);
        break;
    case KEY_PPAGE:
    case 'b':
        scroll_to(view, top - page);
        break;
    case KEY_NPAGE:
    case ' ':
        scroll_to(view, top + page);
        break;
    case KEY_HOME:
    case 'g':
        scroll_to(view, 0);
        break;
    case KEY_END:
    case 'G':
        scroll_to(view, (long)view->count);
        break;
    case CONTROL_L:
    case KEY_RESIZE:
        clearok(curscr, TRUE);
        break;
    default:
        break;
    }
    return true;
}

/* With _FORTIFY_SOURCE glibc 2.36 calls the ppoll for a time_t of 32 bits also where
 * this program's time_t has 64. */
#if defined(__TIMESIZE) && __TIMESIZE == 32 && defined(__USE_TIME_BITS64)
int ppoll_ns(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
             const sigset_t *signals) __asm__("__ppoll64");
#else
#define ppoll_ns ppoll
#endif

/* Runs until q, a signal, a refusal, or the end of the terminal. */
static void show(struct looker *looker, struct view *view, const sigset_t *deliver)
{
    /* No event reports that a reply is missing. */
    const struct timespec tick = { .tv_sec = SILENCE_MS / MS_PER_S };
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                            { .fd = looker->wake[0], .events = POLLIN } };
    int key;

    while (ended_by == 0 && !view->refused) {
        view->waits_ms = looker_waits_ms(looker);
        view->pause_ms = looker_pause_ms(looker);
        if (view->pause_ms <= looker->watch->interval_ms)
            view->pause_ms = 0;
        draw(view);
        fds[0].revents = fds[1].revents = 0;
        if (ppoll_ns(fds, 2, &tick, deliver) < 0 && errno != EINTR)
            return;
        if (stop_wanted)
            stop_here();
        if (fds[0].revents & (POLLERR | POLLHUP | POLLNVAL))
            return;
        while ((key = getch()) != ERR)
            if (!on_key(view, key))
                return;
        struct look_list *list = looker_take(looker);
        if (list)
            view_update(view, list);
    }
}

bool watch_screen(const struct watch *watch, int *ret_code)
{
    /* Both remain when the looker is left behind. */
    static struct looker looker;
    static struct view view;
    sigset_t before;

    catch_signals(&before);
    if (!enter_screen()) {
        release_signals(&before);
        return false;
    }
    *ret_code = CLI_OK;
    bool started = looker_start(&looker, watch);
    if (started)
        show(&looker, &view, &before);
    leave_screen();
    if (ended_by != 0) {
        release_signals(&before);
        raise(ended_by);
    }
    if (!started) {
        cli_complain("cannot start a thread");
        *ret_code = CLI_INTERNAL;
        return true;
    }
    if (view.refused) {
        cli_complain("cannot list the locks: %s", view.reason);
        *ret_code = cli_exit_code(view.code);
    }
    if (!looker_stop(&looker))
        _exit(cli_printed(*ret_code));
    drop_lines(&view);
    looker_drop(view.list);
    return true;
}

#else

bool watch_screen(const struct watch *watch, int *ret_code)
{
    (void)watch;
    (void)ret_code;
    return false;
}

#endif
