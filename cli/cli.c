/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands. Thread: main only. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PASSWORD_MAX = 2047,
    ESCAPE_LEN = 4,
    URL_MAX = 16384, /* longer URLs get a description instead of their text */
    SOURCE_MAX = 4096
};

static struct cli_named named;
static bool named_by_option;

/* ---- messages */

static void to_stderr(const char *line, size_t len)
{
    fwrite(line, 1, len, stderr);
}

static void (*listener)(const char *line, size_t len) = to_stderr;

void cli_tell_by(void (*tell)(const char *line, size_t len))
{
    listener = tell ? tell : to_stderr;
}

/* Writes in one piece; cuts what is too long for a line. detail: NULL: none. */
__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args,
                                                      const char *detail)
{
    static const char prefix[] = "rlock: ";
    char line[CLI_LINE_MAX];
    const size_t most = sizeof(line) - 2; /* the newline */
    size_t len = sizeof(prefix) - 1;

    memcpy(line, prefix, len);
    int n = vsnprintf(line + len, sizeof(line) - len, format, args);
    len += n > 0 ? (size_t)n : 0;
    if (detail && len < most) {
        n = snprintf(line + len, sizeof(line) - len, ": %s", detail);
        len += n > 0 ? (size_t)n : 0;
    }
    if (len > most)
        len = most;
    line[len++] = '\n';
    listener(line, len);
}

void cli_complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args, NULL);
    va_end(args);
}

int cli_exit_code(int code)
{
    switch (code) {
    case 0:
        return CLI_OK;
    case ENOENT:
        return CLI_NO;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTSUP: /* rediss:// */
        return CLI_USAGE;
    case ENOTCONN:
        return CLI_UNREACHABLE;
    case EBUSY:
    case ETIMEDOUT:
        return CLI_BUSY;
    case EACCES:
        return CLI_REFUSED;
    case ESTALE:
        return CLI_LOST;
    case EPROTO:
    case ENOTRECOVERABLE:
        return CLI_PROTOCOL;
    default:
        return CLI_INTERNAL;
    }
}

/* The message without the prefix for a URL of the program: the command names --url. */
static const char *detail_of(int code)
{
    static const char prefix[] = "URL: ";
    const char *detail = rlock_errmsg();

    if (strncmp(detail, prefix, sizeof(prefix) - 1) == 0)
        detail += sizeof(prefix) - 1;
    return detail[0] ? detail : rlock_strerror(code);
}

int cli_failed(int code, const char *format, ...)
{
    bool is_servers = code == ENOTCONN || code == EACCES;
    char text[CLI_LINE_MAX];
    va_list args;

    snprintf(text, sizeof(text), "%s%s", detail_of(code),
             is_servers && named_by_option ? " (the server is that of --url)" : "");
    va_start(args, format);
    say(format, args, text);
    va_end(args);
    return cli_exit_code(code);
}

int cli_printed(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    cli_complain("cannot write to stdout: %s", strerror(errno));
    return CLI_INTERNAL;
}

void cli_bad_usage(const struct cli_command *command, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "rlock %s: ", command->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nTry: rlock %s --help\n", command->name);
    exit(CLI_USAGE);
}

bool cli_common_option(const struct cli_command *command, struct cli_server *server,
                       int option)
{
    extern char *optarg;

    if (option >= CLI_OPT_TLS && option <= CLI_OPT_TLS_LAST) {
        server->tls[option - CLI_OPT_TLS] = optarg;
        return true;
    }
    switch (option) {
    case CLI_OPT_URL:
        server->url = optarg;
        return true;
    case CLI_OPT_USER:
        server->user = optarg;
        return true;
    case CLI_OPT_PASSWORD_FILE:
        server->password_file = optarg;
        return true;
    case 'h':
        fputs(command->usage, stdout);
        exit(cli_printed(CLI_OK));
    case '?': /* getopt has printed the message */
        fprintf(stderr, "Try: rlock %s --help\n", command->name);
        exit(CLI_USAGE);
    default:
        return false;
    }
}

long cli_number(const struct cli_command *command, const char *what, const char *text,
                long min, long max)
{
    char *end;

    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < min || number > max)
        cli_bad_usage(command, "%s: \"%s\" is not a number from %ld to %ld", what, text,
                      min, max);
    return number;
}

/* ---- the client */

/* redis://user:password@host. The host begins after the last '@', because users and
 * passwords may contain others; passwords may also contain '/' and '?', so the whole
 * URL is checked. */
static bool holds_password(const char *url)
{
    const char *from = strstr(url, "://");
    from = from ? from + strlen("://") : url;
    const char *sign = strrchr(from, '@'), *colon = strchr(from, ':');
    return (sign && colon && colon < sign) || strstr(from, "sentinelpassword=");
}

/* The first line of the file. Ends the program if there is none. */
static void read_password(const struct cli_command *command, const char *path,
                          char *ret_password, size_t size)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");

    if (!file)
        cli_bad_usage(command, "--password-file: %s: %s", path, strerror(errno));
    setvbuf(file, NULL, _IONBF, 0); /* no copy, and no more of stdin */
    if (!fgets(ret_password, (int)size, file))
        cli_bad_usage(command, "--password-file: %s: no line in it", path);
    size_t len = strcspn(ret_password, "\r\n");
    if (ret_password[len] == '\0' && len == size - 1)
        cli_bad_usage(command, "--password-file: %s: its line is too long", path);
    ret_password[len] = '\0';
    if (len == 0) /* the library would take it for no password */
        cli_bad_usage(command, "--password-file: %s: no password in the first line",
                      path);
    if (file != stdin)
        fclose(file);
}

static void set_credentials(const struct cli_command *command,
                            const struct cli_server *server, rlock_clientattr_t *attr)
{
    char line[PASSWORD_MAX + 2];
    const char *user = server->user ? server->user : getenv("RLOCK_USER");
    const char *password = getenv("RLOCK_PASSWORD");

    if (server->password_file) {
        read_password(command, server->password_file, line, sizeof(line));
        password = line;
    }
    if (password || user) {
        int rc = rlock_clientattr_setcredentials(attr, user, password);
        if (rc != 0)
            cli_bad_usage(command, "%s", rlock_errmsg());
    }
    explicit_bzero(line, sizeof(line));
}

static int set_verify(rlock_clientattr_t *attr, const char *verify)
{
    if (strcmp(verify, "full") == 0)
        return rlock_clientattr_setverify(attr, RLOCK_VERIFY_FULL);
    return strcmp(verify, "ca") == 0 ? rlock_clientattr_setverify(attr, RLOCK_VERIFY_CA)
                                     : EINVAL;
}

static void set_tls(const struct cli_command *command, const struct cli_server *server,
                    rlock_clientattr_t *attr)
{
    static const struct {
        const char *name;
        int (*set)(rlock_clientattr_t *attr, const char *value);
    } options[] = {
        { "--tls-cafile", rlock_clientattr_setcafile },
        { "--tls-cadir", rlock_clientattr_setcadir },
        { "--tls-certfile", rlock_clientattr_setcertfile },
        { "--tls-keyfile", rlock_clientattr_setkeyfile },
        { "--tls-name", rlock_clientattr_settlsname },
        { "--tls-verify", set_verify },
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (!server->tls[i])
            continue;
        int rc = options[i].set(attr, server->tls[i]);
        if (rc != 0)
            cli_bad_usage(command, "%s: %s", options[i].name,
                          rlock_errmsg()[0] ? rlock_errmsg() : "it is full or ca");
    }
}

const struct cli_named *cli_server(void)
{
    return &named;
}

static void note_server(const rlock_client_t *client, bool by_option)
{
    char url[URL_MAX] = "a very long URL", source[SOURCE_MAX] = "a very long path";

    (void)rlock_client_getserver(client, url, sizeof(url), source, sizeof(source));
    named.url = cli_printable(url);
    named.source = by_option ? "--url" : cli_printable(source);
    named.is_built_in = strcmp(source, "built-in default") == 0;
    named_by_option = by_option;
}

/* Options for TLS beside a URL without TLS are an error, because the user expects TLS. */
static void check_tls(const struct cli_command *command, const struct cli_server *server)
{
    static const char *const begins[] = { "rediss", "valkeys" };
    bool is_tls = false;

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        is_tls |= strncasecmp(named.url, begins[i], strlen(begins[i])) == 0 &&
                  strchr("+-:", named.url[strlen(begins[i])]);

    for (size_t i = 0; i < sizeof(server->tls) / sizeof(server->tls[0]); i++)
        if (server->tls[i] && !is_tls)
            cli_bad_usage(
                command,
                "options for TLS need a URL with rediss://, but the server is %s",
                named.url);
}

rlock_client_t *cli_open(const struct cli_command *command,
                         const struct cli_server *server, rlock_clientattr_t *attr)
{
    rlock_clientattr_t plain;
    rlock_client_t *client = NULL;

    const char *url = server->url && server->url[0] ? server->url : NULL;

    if (url && holds_password(url))
        cli_bad_usage(command,
                      "--url: all users of this machine can read a password there;"
                      " use RLOCK_URL, RLOCK_PASSWORD or --password-file");
    if (!attr) {
        rlock_clientattr_init(&plain);
        attr = &plain;
    }
    set_credentials(command, server, attr);
    set_tls(command, server, attr);
    int rc = rlock_client_open(&client, url, attr);
    if (rc != 0) /* immediately: the next call of the library replaces the message */
        exit(cli_failed(rc, url ? "cannot use the URL from --url"
                                : "no server can be reached"));
    note_server(client, url != NULL);
    check_tls(command, server);
    if (attr == &plain)
        rlock_clientattr_destroy(&plain);
    return client;
}

void cli_have_no_children(void)
{
    signal(SIGCHLD, SIG_IGN);
    while (waitpid(-1, NULL, WNOHANG) > 0) /* those that have ended already */
        continue;
}

void cli_close(rlock_client_t *client)
{
    (void)rlock_client_close(client);
}

char *cli_printable(const char *text)
{
    char *shown = malloc(strlen(text) * ESCAPE_LEN + 1), *at = shown;

    if (!shown) {
        cli_complain("out of memory");
        exit(CLI_INTERNAL);
    }
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c <= '~' && c != '"' && c != '\\')
            *at++ = (char)c;
        else
            at += sprintf(at, "\\x%02x", c);
    }
    *at = '\0';
    return shown;
}
