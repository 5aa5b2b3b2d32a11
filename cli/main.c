/* SPDX-License-Identifier: Apache-2.0 */
/* rlock(1): finds the command and runs it. */
#include "cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct cli_command *const commands[] = {
    &cli_run, &cli_list, &cli_show, &cli_watch, &cli_release, &cli_wait, &cli_doctor,
};

static const char usage[] =
    "Usage: rlock COMMAND [OPTION...] ...\n"
    "Locks in Redis or Valkey that several hosts share.\n"
    "\n"
    "  run NAME -- COMMAND...   run a command while holding a lock\n"
    "  list [PATTERN]           the locks that are held\n"
    "  show NAME                who holds it, who waits, in order\n"
    "  watch [PATTERN]          the same, live\n"
    "  wait NAME                until nobody holds it, without taking it\n"
    "  release --force NAME     take it from its holder\n"
    "  doctor                   is this server fit for locks?\n"
    "\n"
    "Options that every command knows:\n"
    "  --url URL            redis://host[:port][/db], rediss://, unix:///path,\n"
    "                       redis-sentinel://host[:port][,host...]/master or\n"
    "                       redis-cluster://host[:port][,host...];\n"
    "                       else $RLOCK_URL, else that of rlock.conf(5), else\n"
    "                       redis://127.0.0.1:6379\n"
    "  --user NAME          else $RLOCK_USER\n"
    "  --password-file F    its first line; else $RLOCK_PASSWORD\n"
    "  --tls-cafile F, --tls-cadir D, --tls-certfile F, --tls-keyfile F,\n"
    "  --tls-name NAME, --tls-verify full|ca      for rediss://, see rlock(1)\n"
    "  -h, --help           of a command: its options\n"
    "\n"
    "rlock --version; rlock(1) has examples and the exit codes.\n";

/*
 * If standard descriptors are closed, the library would get their numbers, and messages
 * would go to the server. The replacement fails when it is read or written, as a closed
 * descriptor does, and a command that rlock runs finds it closed.
 */
static bool occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
            return false;
    return true;
}

/* getopt's messages begin with argv[0]. */
static int run(const struct cli_command *command, int argc, char **argv)
{
    char title[CLI_LINE_MAX];

    snprintf(title, sizeof(title), "rlock %s", command->name);
    argv[0] = title;
    return command->run(argc, argv);
}

int main(int argc, char **argv)
{
    if (!occupy_standard_descriptors())
        return CLI_INTERNAL;
    if (argc < 2) {
        fputs(usage, stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        fputs(usage, stdout);
        return cli_printed(CLI_OK);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("rlock %s\n", rlock_version());
        return cli_printed(CLI_OK);
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            return run(commands[i], argc - 1, argv + 1);
    if (argv[1][0] == '-')
        cli_complain("\"%s\": options go behind the command", argv[1]);
    else
        cli_complain("no command \"%s\"", argv[1]);
    fputs("Try: rlock --help\n", stderr);
    return CLI_USAGE;
}
