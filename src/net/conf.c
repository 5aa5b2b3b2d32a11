/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's URL from environment or file. No state: the file is read each time, into
 * memory that is wiped, because it or the password file may contain a password. Messages
 * name the line and never show its text. Thread: any.
 */
#include "net/conf.h"

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"

#include <rlock.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define OF_SYSTEM RLK_SYSCONFDIR "/rlock.conf"
#define BUILT_IN "redis://127.0.0.1:6379"

enum {
    LINE_LEN_MAX = 8192,
    FILE_SIZE_MAX = 65536,
    PASSWORD_LEN_MAX = sizeof(((rlock_clientattr_t *)0)->rlk_password) - 1,
    WHY_SIZE = 200,
    NULL_MAJOR = 1, /* /dev/null, by Linux's list of devices */
    NULL_MINOR = 3
};

/* ---- reading */

struct text {
    char *at; /* NUL-terminated after len bytes */
    size_t len;
    struct stat st;
};

static void text_clear(struct text *text)
{
    if (text->at)
        explicit_bzero(text->at, text->len);
    free(text->at);
    *text = (struct text){ 0 };
}

/* Shortages keep their codes; everything else is EINVAL: a useless file. */
static const char *failed(int code, int *ret_code)
{
    bool short_of = code == ENOMEM || code == EMFILE || code == ENFILE;
    *ret_code = short_of ? code : EINVAL;
    return strerror(code);
}

static bool is_null_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(NULL_MAJOR, NULL_MINOR);
}

static const char *read_fd(int fd, struct text *text, size_t most, int *ret_code)
{
    *ret_code = EINVAL;
    if (fstat(fd, &text->st) != 0)
        return failed(errno, ret_code);
    if (S_ISDIR(text->st.st_mode))
        return "is a directory";
    if (!S_ISREG(text->st.st_mode) && !is_null_device(&text->st))
        return "not a regular file";
    text->at = malloc(most + 1);
    if (!text->at)
        return failed(ENOMEM, ret_code);
    while (text->len < most) {
        ssize_t n = read(fd, text->at + text->len, most - text->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(errno, ret_code);
        if (n == 0)
            break;
        text->len += (size_t)n;
    }
    text->at[text->len] = '\0';
    return NULL;
}

/* Reads the first `most` bytes of a file; clear them afterwards. Returns NULL, or why
 * not, with a code; ENOENT keeps its code. */
static const char *read_file(const char *path, struct text *text, size_t most,
                             int *ret_code)
{
    struct stat st;

    *text = (struct text){ 0 };
    int fd = rlk_fd_openat(AT_FDCWD, path, O_RDONLY | O_NOCTTY, 0);
    if (fd < 0) {
        int code = errno;
        if (code == ENOENT && lstat(path, &st) == 0) {
            *ret_code = EINVAL;
            return "dangling symbolic link";
        }
        const char *why = failed(code, ret_code);
        if (code == ENOENT)
            *ret_code = ENOENT;
        return why;
    }
    const char *why = read_fd(fd, text, most, ret_code);
    rlk_fd_close(fd);
    if (why)
        text_clear(text);
    return why;
}

/* Why a file with this mode is no place for a password; NULL: it is one. */
static const char *exposure(const struct stat *st)
{
    if (st->st_mode & S_IRWXO)
        return "other users have access to the file (chmod o=)";
    if (st->st_mode & S_IWGRP)
        return "the file is group-writable (chmod g-w)";
    return NULL;
}

/* ---- the file's lines */

enum key {
    KEY_URL,
    KEY_USER,
    KEY_PASSWORDFILE,
    KEY_TLSNAME, /* this and the following: for TLS */
    KEY_VERIFY,
    KEY_CAFILE, /* this and the following: paths */
    KEY_CADIR,
    KEY_CERTFILE,
    KEY_KEYFILE,
    KEY_COUNT
};

static const char *const key_names[KEY_COUNT] = {
    [KEY_URL] = "url",         [KEY_USER] = "user",
    [KEY_TLSNAME] = "tlsname", [KEY_PASSWORDFILE] = "passwordfile",
    [KEY_VERIFY] = "verify",   [KEY_CAFILE] = "cafile",
    [KEY_CADIR] = "cadir",     [KEY_CERTFILE] = "certfile",
    [KEY_KEYFILE] = "keyfile",
};

struct entry {
    char *value; /* points into the text; NULL: none */
    int line;
};

struct conf {
    char shown[RLK_LOG_NAME_SIZE]; /* the path, for messages */
    struct text text;
    struct entry entries[KEY_COUNT];
};

/* As rlk_error_set, with file and line before the text. */
__attribute__((format(printf, 4, 5))) static int refuse(const struct conf *conf, int line,
                                                        int code, const char *format, ...)
{
    char why[WHY_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    return rlk_error_set(code, "%s, line %d: %s", conf->shown, line, why);
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Cuts blanks at both ends; changes the text. */
static char *trim(char *text)
{
    size_t len = strlen(text);
    while (len > 0 && is_blank(text[len - 1]))
        text[--len] = '\0';
    while (is_blank(*text))
        text++;
    return text;
}

static int take_entry(struct conf *conf, char *line, int number)
{
    char *equal = strchr(line, '=');
    int key = 0;

    if (!equal)
        return refuse(conf, number, EINVAL, "no '=' in the line");
    *equal = '\0';
    const char *name = trim(line);
    while (key < KEY_COUNT && strcmp(name, key_names[key]) != 0)
        key++;
    if (key == KEY_COUNT)
        return refuse(
            conf, number, EINVAL,
            "unknown key; the keys are url, user, passwordfile, and for TLS cafile, "
            "cadir, certfile, keyfile, tlsname and verify");
    struct entry *entry = &conf->entries[key];
    if (entry->value)
        return refuse(conf, number, EINVAL, "%s is given twice, first in line %d",
                      key_names[key], entry->line);
    *entry = (struct entry){ trim(equal + 1), number };
    if (!entry->value[0])
        return refuse(conf, number, EINVAL, "%s has no value", key_names[key]);
    return 0;
}

/* Takes a line of `len` bytes, with a NUL after them. */
static int take_line(struct conf *conf, char *line, size_t len, int number)
{
    if (len > LINE_LEN_MAX)
        return refuse(conf, number, EINVAL, "longer than %d bytes", LINE_LEN_MAX);
    if (memchr(line, '\0', len))
        return refuse(conf, number, EINVAL, "contains a NUL byte");
    line = trim(line);
    return *line == '\0' || *line == '#' ? 0 : take_entry(conf, line, number);
}

static int take_lines(struct conf *conf)
{
    char *line = conf->text.at, *end = line + conf->text.len;

    if (conf->text.len > FILE_SIZE_MAX)
        return rlk_error_set(EINVAL, "%s: longer than %d bytes", conf->shown,
                             FILE_SIZE_MAX);
    for (int number = 1; line < end; number++) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *behind = newline ? newline : end;
        *behind = '\0';
        int rc = take_line(conf, line, (size_t)(behind - line), number);
        if (rc != 0)
            return rc;
        line = behind + 1;
    }
    return 0;
}

/* Checks which entries go together. */
static int check_entries(const struct conf *conf)
{
    const struct entry *url = &conf->entries[KEY_URL], *user = &conf->entries[KEY_USER],
                       *file = &conf->entries[KEY_PASSWORDFILE];

    if (user->value && !file->value)
        return refuse(conf, user->line, EINVAL, "user without passwordfile");
    if (file->value && !url->value)
        return refuse(conf, file->line, EINVAL, "passwordfile without url");
    if (file->value && file->value[0] != '/')
        return refuse(conf, file->line, EINVAL, "passwordfile is not an absolute path");
    for (int key = KEY_TLSNAME; key < KEY_COUNT; key++) {
        const struct entry *entry = &conf->entries[key];
        if (entry->value && !url->value)
            return refuse(conf, entry->line, EINVAL, "%s without url", key_names[key]);
        if (entry->value && key >= KEY_CAFILE && entry->value[0] != '/')
            return refuse(conf, entry->line, EINVAL, "%s is not an absolute path",
                          key_names[key]);
    }
    return 0;
}

/* The file's settings for TLS, except those that the program or the URL has set. */
static int set_tls(struct rlk_config *config, const struct conf *conf)
{
    struct rlk_tls_settings *settings = &config->endpoint.tls;
    bool is_set[KEY_COUNT];
    int rc = 0;

    for (int key = KEY_TLSNAME; key < KEY_COUNT; key++)
        is_set[key] = rlk_url_tls_has(settings, key_names[key]);
    for (int key = KEY_TLSNAME; rc == 0 && key < KEY_COUNT; key++) {
        const struct entry *entry = &conf->entries[key];
        if (entry->value && !is_set[key])
            rc = rlk_url_tls_set(settings, key_names[key], entry->value, conf->shown);
    }
    return rc;
}

/* Settings for TLS that would have no effect are refused: the user who wrote them expects
 * TLS. */
static int check_tls(const struct rlk_config *config, const struct conf *conf)
{
    for (int key = KEY_TLSNAME; !config->endpoint.tls.on && key < KEY_COUNT; key++) {
        const struct entry *entry = &conf->entries[key];
        if (entry->value)
            return refuse(conf, entry->line, EINVAL,
                          "%s requires a URL that begins with rediss://", key_names[key]);
    }
    return 0;
}

/* ---- credentials */

static void wipe(char **string)
{
    if (*string)
        explicit_bzero(*string, strlen(*string));
    free(*string);
    *string = NULL;
}

/* Finds the password in the first line of that file. Leaves the text as it is. */
static const char *password_of(const struct text *text, size_t *ret_len)
{
    size_t len = 0;

    while (len < text->len && text->at[len] != '\n' && text->at[len] != '\r')
        len++;
    *ret_len = len;
    if (len == 0)
        return "no password in the first line";
    if (len > PASSWORD_LEN_MAX)
        return "the first line is too long";
    return memchr(text->at, '\0', len) ? "contains a NUL byte" : NULL;
}

static int set_credentials(struct rlk_endpoint *endpoint, const struct conf *conf)
{
    const struct entry *file = &conf->entries[KEY_PASSWORDFILE];
    const char *user = conf->entries[KEY_USER].value;
    char shown[RLK_LOG_NAME_SIZE];
    struct text text;
    size_t len = 0;
    int code;

    const char *why = read_file(file->value, &text, PASSWORD_LEN_MAX + 2, &code);
    if (code == ENOENT)
        code = EINVAL;
    if (!why && S_ISREG(text.st.st_mode))
        why = exposure(&text.st);
    if (!why)
        why = password_of(&text, &len);
    if (!why) {
        endpoint->password = strndup(text.at, len);
        endpoint->user = user ? strdup(user) : NULL;
        if (!endpoint->password || (user && !endpoint->user))
            why = failed(ENOMEM, &code);
    }
    text_clear(&text);
    if (!why)
        return 0;
    rlk_log_name(shown, sizeof(shown), file->value, strlen(file->value));
    return refuse(conf, file->line, code, "passwordfile %s: %s", shown, why);
}

/* Credentials in the file's URL win over those that the program set, as with every
 * URL. Credentials beside the URL apply only if the program set none. */
static int set_endpoint(struct rlk_config *config, const struct conf *conf)
{
    const struct entry *url = &conf->entries[KEY_URL],
                       *file = &conf->entries[KEY_PASSWORDFILE];
    struct rlk_endpoint *endpoint = &config->endpoint;
    char *user = endpoint->user, *password = endpoint->password;
    char why[WHY_SIZE];

    endpoint->user = endpoint->password = NULL;
    int rc = rlk_url_parse(config, url->value);
    bool of_url = endpoint->user || endpoint->password; /* on failure maybe one */
    if (of_url) {
        wipe(&user);
        wipe(&password);
    } else {
        endpoint->user = user;
        endpoint->password = password;
    }
    if (rc != 0) {
        snprintf(why, sizeof(why), "%s", rlk_error_message());
        return refuse(conf, url->line, rc, "%s", why);
    }
    if (of_url && exposure(&conf->text.st))
        return refuse(
            conf, url->line, EINVAL,
            "the URL contains a password, and %s; alternatively use passwordfile",
            exposure(&conf->text.st));
    if (strstr(url->value, "sentinelpassword=") && exposure(&conf->text.st))
        return refuse(conf, url->line, EINVAL,
                      "the URL contains a password of sentinels, and %s",
                      exposure(&conf->text.st));
    if (of_url && file->value)
        return refuse(conf, file->line, EINVAL,
                      "passwordfile together with a URL that contains a password");
    return file->value && !endpoint->user && !endpoint->password
               ? set_credentials(endpoint, conf)
               : 0;
}

/* ---- the choice */

static int note_source(struct rlk_config *config, const char *source)
{
    char shown[sizeof(config->endpoint.whence) - sizeof(" ()") + 1];

    config->source = source;
    rlk_log_name(shown, sizeof(shown), source, strlen(source));
    snprintf(config->endpoint.whence, sizeof(config->endpoint.whence), " (%s)", shown);
    return 0;
}

static int parse_built_in(struct rlk_config *config)
{
    int rc = rlk_url_parse(config, BUILT_IN);
    return rc != 0 ? rc : note_source(config, RLK_SOURCE_BUILT_IN);
}

/* The name of the variable replaces the message's own prefix. */
static int parse_environment(struct rlk_config *config, const char *url)
{
    static const char prefix[] = "URL: ";
    char why[WHY_SIZE];
    int rc = rlk_url_parse(config, url);

    if (rc == 0)
        return note_source(config, RLK_SOURCE_ENVIRONMENT);
    const char *said = rlk_error_message();
    bool has_prefix = strncmp(said, prefix, sizeof(prefix) - 1) == 0;
    snprintf(why, sizeof(why), "%s", said + (has_prefix ? sizeof(prefix) - 1 : 0));
    return rlk_error_set(rc, "RLOCK_URL: %s", why);
}

/* Takes the text of a file. */
static int parse_text(struct rlk_config *config, struct conf *conf, const char *path)
{
    if (S_ISREG(conf->text.st.st_mode) && (conf->text.st.st_mode & S_IWOTH))
        return rlk_error_set(EINVAL, "%s: the file is world-writable", conf->shown);
    int rc = take_lines(conf);
    if (rc == 0)
        rc = check_entries(conf);
    if (rc != 0)
        return rc;
    if (!conf->entries[KEY_URL].value)
        return parse_built_in(config);
    rc = set_tls(config, conf);
    if (rc == 0)
        rc = set_endpoint(config, conf);
    if (rc == 0)
        rc = check_tls(config, conf);
    if (rc != 0)
        return rc;
    config->source_path = strdup(path);
    return config->source_path ? note_source(config, config->source_path)
                               : rlk_error_set(ENOMEM, "out of memory");
}

static int parse_file(struct rlk_config *config, const char *path, bool must_be_there)
{
    struct conf conf = { .text = { 0 } };
    int code;

    rlk_log_name(conf.shown, sizeof(conf.shown), path, strlen(path));
    const char *why = read_file(path, &conf.text, FILE_SIZE_MAX + 1, &code);
    if (why && code == ENOENT && !must_be_there)
        return parse_built_in(config);
    if (why)
        return rlk_error_set(code == ENOENT ? EINVAL : code, "%s%s: %s",
                             must_be_there ? "RLOCK_CONF: " : "", conf.shown, why);
    int rc = parse_text(config, &conf, path);
    text_clear(&conf.text);
    return rc;
}

int rlk_conf_parse(struct rlk_config *config)
{
    const char *url = secure_getenv("RLOCK_URL"), *path = secure_getenv("RLOCK_CONF");

    if (url && url[0])
        return parse_environment(config, url);
    if (!path || !path[0])
        return parse_file(config, OF_SYSTEM, false);
    if (path[0] != '/')
        return rlk_error_set(EINVAL, "RLOCK_CONF: not an absolute path");
    return parse_file(config, path, true);
}
