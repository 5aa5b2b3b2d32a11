/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of files like /etc/rlock.conf. The input up to its first byte 0xff is such a
 * file; the rest is the password file, and '^' stands for its path. Properties: a file
 * that is accepted names one server, and its URL means the same; a refusal is explained
 * in one printable line that begins with the file's path and shows no password.
 */
#include "base/error.h"
#include "fuzz.h"
#include "net/conf.h"

#include <errno.h>
#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_MS = 3000, CONNECTIONS = 16, PATH_SIZE = 32, END_OF_TEXT = 0xff };

#define SECRET "qzcanaryzq"
#define USER "of-the-program"

/* A file in memory, with a path. */
struct file {
    int fd;
    char path[PATH_SIZE];
};

static struct file conf, password;

static void make_file(struct file *file)
{
    file->fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (file->fd < 0 || fchmod(file->fd, S_IRUSR | S_IWUSR) != 0)
        abort();
    snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

static void set_up(void)
{
    if (conf.path[0])
        return;
    make_file(&conf);
    make_file(&password);
    unsetenv("RLOCK_URL");
    setenv("RLOCK_CONF", conf.path, 1);
}

static void fill(const struct file *file, const char *text, size_t len)
{
    if (ftruncate(file->fd, 0) != 0 || pwrite(file->fd, text, len, 0) != (ssize_t)len)
        abort();
}

static struct rlk_config fresh(bool with_credentials)
{
    struct rlk_config config = { .lease_ms = DEFAULT_MS,
                                 .presence_ms = DEFAULT_MS,
                                 .command_timeout_ms = DEFAULT_MS,
                                 .connect_timeout_ms = DEFAULT_MS,
                                 .max_connections = CONNECTIONS,
                                 .mutex_type = RLOCK_MUTEX_RECURSIVE };
    if (with_credentials) {
        config.endpoint.user = strdup(USER);
        config.endpoint.password = strdup(SECRET);
    }
    return config;
}

static bool same_text(const char *a, const char *b)
{
    return !a || !b ? a == b : strcmp(a, b) == 0;
}

/* Whether the password is the first line of the password file. */
static bool is_of_file(const char *text, const char *bytes, size_t len)
{
    size_t end = 0;
    while (end < len && bytes[end] != '\n' && bytes[end] != '\r')
        end++;
    return strlen(text) == end && memcmp(text, bytes, end) == 0;
}

/* Checks that the URL says all except the credentials. These are the URL's, if it may
 * have any; else the program's, or those of the password file. */
static void check_taken(const struct rlk_config *c, bool may_be_of_url,
                        bool with_credentials, const char *bytes, size_t len)
{
    struct rlk_config of_url = fresh(false);
    const struct rlk_endpoint *t = &c->endpoint, *u = &of_url.endpoint;

    fuzz_must(!t->host + !t->path == (t->sentinels.count > 0 ? 2 : 1));
    fuzz_must(strcmp(c->source, conf.path) == 0 ||
              strcmp(c->source, RLK_SOURCE_BUILT_IN) == 0);
    fuzz_must(fuzz_printable(t->whence) && strstr(t->whence, c->source));
    fuzz_must(rlk_url_parse(&of_url, c->url) == 0);
    fuzz_must(same_text(t->host, u->host) && same_text(t->path, u->path));
    fuzz_must(t->port == u->port && t->db == u->db);
    fuzz_must(c->lease_ms == of_url.lease_ms && c->mutex_type == of_url.mutex_type);
    fuzz_must(!t->user || t->password);
    if (!may_be_of_url && with_credentials)
        fuzz_must(same_text(t->password, SECRET) && same_text(t->user, USER));
    else if (!may_be_of_url && t->password)
        fuzz_must(is_of_file(t->password, bytes, len));
    rlk_url_config_clear(&of_url);
}

static void check(const char *text, size_t len, bool with_credentials, const char *bytes,
                  size_t bytes_len)
{
    struct rlk_config config = fresh(with_credentials);

    fill(&conf, text, len);
    rlk_error_clear();
    int rc = rlk_conf_parse(&config);
    fuzz_must(rc == 0 || rc == EINVAL || rc == ENOTSUP);
    if (rc == 0) {
        bool may_be_of_url = len > 0 && memchr(text, '@', len);
        check_taken(&config, may_be_of_url, with_credentials, bytes, bytes_len);
    } else {
        fuzz_must(strncmp(rlk_error_message(), conf.path, strlen(conf.path)) == 0);
        fuzz_must(fuzz_printable(rlk_error_message()));
        fuzz_must(!strstr(rlk_error_message(), SECRET));
    }
    rlk_url_config_clear(&config);
}

/* With text before and behind the input: a password, or what may be meant as one. */
static void check_secret(const char *text, size_t len)
{
    static const char *const forms[][2] = { { "url=redis://u:" SECRET "@", "" },
                                            { "url=redis://u:" SECRET, "" },
                                            { SECRET "=", "" },
                                            { SECRET, "" },
                                            { "", "\nurl=unix:///u:" SECRET "@" },
                                            { "", "\npassword=" SECRET } };
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t before = strlen(forms[i][0]), behind = strlen(forms[i][1]);
        char *all = fuzz_copy(forms[i][0], before, false);
        all = realloc(all, before + len + behind + 1);
        if (!all)
            abort();
        memcpy(all + before, text, len);
        memcpy(all + before + len, forms[i][1], behind);
        struct rlk_config config = fresh(false);
        fill(&conf, all, before + len + behind);
        rlk_error_clear();
        if (rlk_conf_parse(&config) != 0)
            fuzz_must(!strstr(rlk_error_message(), SECRET));
        rlk_url_config_clear(&config);
        free(all);
    }
}

static bool contains(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

/* Whether to skip the input: it names a device, or itself contains the word that is
 * searched for in messages. */
static bool is_left_out(const char *data, size_t size)
{
    static const char *const words[] = { "/dev", "/proc", "/sys", SECRET };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (contains(data, size, words[i]))
            return true;
    return false;
}

/* Puts the path in place of each '^'; *ret_len bytes, released with free(). */
static char *expand(const uint8_t *data, size_t size, size_t *ret_len)
{
    char *text = malloc(size * PATH_SIZE + 1);
    size_t len = 0;

    if (!text)
        abort();
    for (size_t i = 0; i < size; i++)
        if (data[i] == '^')
            len += (size_t)sprintf(text + len, "%s", password.path);
        else
            text[len++] = (char)data[i];
    *ret_len = len;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, END_OF_TEXT, size) : NULL;
    size_t text_size = end ? (size_t)(end - data) : size, len;
    char *bytes = fuzz_copy(end ? (const char *)end + 1 : "",
                            end ? size - text_size - 1 : 0, false);
    size_t bytes_len = end ? size - text_size - 1 : 0;

    if (is_left_out((const char *)data, size)) {
        free(bytes);
        return 0;
    }
    set_up();
    char *text = expand(data, text_size, &len);
    fill(&password, bytes, bytes_len);
    check(text, len, false, bytes, bytes_len);
    check(text, len, true, bytes, bytes_len);
    fill(&password, SECRET, strlen(SECRET));
    check_secret(text, len);
    free(text);
    free(bytes);
    return 0;
}
