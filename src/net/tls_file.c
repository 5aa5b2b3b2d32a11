/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of TLS: authorities, certificate, key. This file reads them, and not OpenSSL,
 * so that descriptors close on exec, texts name path and reason, and the bytes of a key
 * are wiped. (OpenSSL itself reads a directory of authorities when it checks a
 * certificate.) Thread: any. Locks: rlk_tls_gate is entered.
 */
#include "net/tls_impl.h"

#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_SIZE_MAX = 4 << 20 };

struct file {
    const char *what, *path; /* "certfile" */
    char *bytes;
    size_t len;
};

/* Shortages keep their codes; any other code becomes EINVAL: the file cannot be used. */
static int say(char text[RLK_TLS_TEXT_SIZE], const struct file *file, int code,
               const char *why)
{
    char shown[RLK_LOG_NAME_SIZE];
    bool is_shortage = code == ENOMEM || code == EMFILE || code == ENFILE;

    rlk_log_name(shown, sizeof(shown), file->path, strlen(file->path));
    snprintf(text, RLK_TLS_TEXT_SIZE, "%s %s: %s", file->what, shown,
             why ? why : strerror(code));
    return is_shortage ? code : EINVAL;
}

static void file_clear(struct file *file)
{
    if (file->bytes)
        explicit_bzero(file->bytes, file->len);
    free(file->bytes);
    file->bytes = NULL;
}

static int read_fd(int fd, struct file *file, char text[RLK_TLS_TEXT_SIZE])
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return say(text, file, errno, NULL);
    if (!S_ISREG(st.st_mode))
        return say(text, file, EINVAL, "not a regular file");
    if (st.st_size > FILE_SIZE_MAX)
        return say(text, file, EINVAL, "the file is too long");
    size_t size = (size_t)st.st_size + 1;
    file->bytes = malloc(size);
    if (!file->bytes)
        return say(text, file, ENOMEM, NULL);
    while (file->len < size) {
        ssize_t n = read(fd, file->bytes + file->len, size - file->len);
        if (n < 0 && errno != EINTR)
            return say(text, file, errno, NULL);
        if (n == 0)
            return 0;
        if (n > 0)
            file->len += (size_t)n;
    }
    return say(text, file, EINVAL, "the file changes while it is read");
}

static int read_file(struct file *file, char text[RLK_TLS_TEXT_SIZE])
{
    int fd = rlk_fd_openat(AT_FDCWD, file->path, O_RDONLY | O_NOCTTY, 0);

    if (fd < 0)
        return say(text, file, errno, NULL);
    int rc = read_fd(fd, file, text);
    rlk_fd_close(fd);
    return rc;
}

/* ---- their contents */

/* OpenSSL's callback for a passphrase. Gives none: a service has no terminal. */
static int no_passphrase(char *buf, int size, int writes, void *arg)
{
    (void)buf;
    (void)size;
    (void)writes;
    (void)arg;
    return -1;
}

/* Whether the newest PEM_read_bio_... has found the end of the file, and no damage. */
static bool was_end(void)
{
    unsigned long error = ERR_peek_last_error();
    return ERR_GET_LIB(error) == ERR_LIB_PEM &&
           ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static const char *add_authorities(SSL_CTX *ctx, BIO *bio)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    X509 *certificate;
    int count = 0;

    while ((certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL) {
        /* Makes OpenSSL cache the extensions while no other thread uses the certificate:
         * later that would be a write. */
        X509_check_purpose(certificate, -1, 0);
        count += X509_STORE_add_cert(store, certificate) == 1;
        X509_free(certificate);
    }
    if (!was_end())
        return "one of its certificates is damaged (PEM)";
    return count > 0 ? NULL : "no certificate in it (PEM)";
}

/* The client's own certificate comes first, then those that lead to an authority. */
static const char *use_certificates(SSL_CTX *ctx, BIO *bio)
{
    X509 *certificate = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL);

    if (!certificate)
        return was_end() ? "no certificate in it (PEM)"
                         : "its first certificate is damaged (PEM)";
    bool good = SSL_CTX_use_certificate(ctx, certificate) == 1;
    X509_free(certificate);
    if (!good)
        return "its first certificate cannot be used";
    while ((certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL) {
        if (SSL_CTX_add0_chain_cert(ctx, certificate) != 1) {
            X509_free(certificate);
            return "its further certificates cannot be used";
        }
    }
    return was_end() ? NULL : "one of its certificates is damaged (PEM)";
}

static const char *use_key(SSL_CTX *ctx, BIO *bio)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);

    if (!key)
        return "no private key in it (PEM, without a passphrase)";
    bool good =
        SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    return good ? NULL : "it is not the key of certfile's certificate";
}

static int load(SSL_CTX *ctx, const char *what, const char *path,
                const char *(*use)(SSL_CTX *ctx, BIO *bio), char text[RLK_TLS_TEXT_SIZE])
{
    struct file file = { .what = what, .path = path };
    int rc = read_file(&file, text);

    if (rc == 0) {
        BIO *bio = BIO_new_mem_buf(file.bytes, (int)file.len);
        const char *why = bio ? use(ctx, bio) : NULL;
        if (!bio || why)
            rc = say(text, &file, bio ? EINVAL : ENOMEM, why);
        BIO_free(bio);
    }
    file_clear(&file);
    return rc;
}

static int load_directory(SSL_CTX *ctx, const char *path, char text[RLK_TLS_TEXT_SIZE])
{
    struct file file = { .what = "cadir", .path = path };
    struct stat st;

    if (stat(path, &st) != 0)
        return say(text, &file, errno, NULL);
    if (!S_ISDIR(st.st_mode))
        return say(text, &file, EINVAL, "not a directory");
    return SSL_CTX_load_verify_dir(ctx, path) == 1 ? 0 : say(text, &file, ENOMEM, NULL);
}

int rlk_tls_file_load(SSL_CTX *ctx, const struct rlk_tls_settings *settings,
                      char text[RLK_TLS_TEXT_SIZE])
{
    const char *keyfile = settings->keyfile ? settings->keyfile : settings->certfile;
    int rc = 0;

    if (settings->cafile)
        rc = load(ctx, "cafile", settings->cafile, add_authorities, text);
    if (rc == 0 && settings->cadir)
        rc = load_directory(ctx, settings->cadir, text);
    if (!settings->cafile && !settings->cadir &&
        SSL_CTX_set_default_verify_paths(ctx) != 1) {
        snprintf(text, RLK_TLS_TEXT_SIZE, "the system's authorities cannot be loaded");
        return ENOMEM;
    }
    if (rc == 0 && settings->certfile)
        rc = load(ctx, "certfile", settings->certfile, use_certificates, text);
    if (rc == 0 && settings->certfile)
        rc =
            load(ctx, settings->keyfile ? "keyfile" : "certfile", keyfile, use_key, text);
    return rc;
}

/* ---- whether the files have changed */

void rlk_tls_file_stamps(const struct rlk_tls_settings *settings,
                         struct rlk_tls_stamp ret_stamps[RLK_TLS_STAMP_COUNT])
{
    /* a directory changes when files are added and removed */
    const char *paths[RLK_TLS_STAMP_COUNT] = { settings->cafile, settings->cadir,
                                               settings->certfile, settings->keyfile };
    struct stat st;

    for (int i = 0; i < RLK_TLS_STAMP_COUNT; i++) {
        ret_stamps[i] = (struct rlk_tls_stamp){ .size = 0 };
        if (paths[i] && stat(paths[i], &st) == 0)
            ret_stamps[i] = (struct rlk_tls_stamp){ st.st_mtim, st.st_size, st.st_ino };
    }
}
