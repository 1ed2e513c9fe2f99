/* Tries to get at what is outside of it: each run does one thing, `VERB:OPERAND` in its parameters, and says the errno.
 * Its constructor writes where it was not asked to. */
#define _GNU_SOURCE
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static tb_status safe_stop(tb_str, tb_bytes *);
#define START start
#define SAFE_STOP safe_stop
#include "hostile.h"
#include "motor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

extern char **environ;

#ifdef CONSTRUCTED
__attribute__((constructor)) static void before_anybody_asked(void) {
    int fd = open(CONSTRUCTED, O_WRONLY | O_CREAT, 0600);
    if (fd >= 0) close(fd);
}
#endif

static int opens(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    char byte = 'x';
    int failed = 0;
    if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECTORY)) failed = read(fd, &byte, 1) < 0 ? errno : 0;
    if ((flags & O_ACCMODE) == O_WRONLY) failed = write(fd, &byte, 1) < 0 ? errno : 0;
    close(fd);
    return failed;
}

static int connects(int family, int type, const char *where) {
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(atoi(where)), .sin_addr.s_addr = htonl(0x7f000001)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    snprintf(un.sun_path, sizeof un.sun_path, "%s", where);
    int failed = family == AF_UNIX ? connect(fd, (struct sockaddr *)&un, sizeof un)
                                   : connect(fd, (struct sockaddr *)&in, sizeof in);
    failed = failed ? errno : 0;
    close(fd);
    return failed;
}

static int runs(const char *program) {
    char *arguments[] = {(char *)program, NULL};
    pid_t pid;
    int failed = posix_spawn(&pid, program, NULL, NULL, arguments, environ), status = 0;
    if (failed) return failed;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : ECHILD;
}

static int attempt(const char *verb, const char *what) {
    struct rlimit limit = {1, 1};
    int pair[2];
    if (!strcmp(verb, "read")) return opens(what, O_RDONLY);
    if (!strcmp(verb, "list")) return opens(what, O_RDONLY | O_DIRECTORY);
    if (!strcmp(verb, "write")) return opens(what, O_WRONLY);
    if (!strcmp(verb, "create")) return opens(what, O_WRONLY | O_CREAT);
    if (!strcmp(verb, "cut")) return truncate(what, 0) ? errno : 0;
    if (!strcmp(verb, "cut_open")) return opens(what, O_RDONLY | O_TRUNC);
    if (!strcmp(verb, "remove")) return unlink(what) ? errno : 0;
    if (!strcmp(verb, "mkdir")) return mkdir(what, 0700) ? errno : 0;
    if (!strcmp(verb, "device")) return mknod(what, S_IFCHR | 0600, 0x105 /* /dev/zero */) ? errno : 0;
    if (!strcmp(verb, "tcp")) return connects(AF_INET, SOCK_STREAM, what);
    if (!strcmp(verb, "udp")) return connects(AF_INET, SOCK_DGRAM, what);
    if (!strcmp(verb, "unix")) return connects(AF_UNIX, SOCK_STREAM, what);
    if (!strcmp(verb, "netlink")) return connects(AF_NETLINK, SOCK_RAW, what);
    if (!strcmp(verb, "uring")) return syscall(SYS_io_uring_setup, 1, NULL) < 0 ? errno : 0;
    if (!strcmp(verb, "pair")) return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ? errno : 0;
    if (!strcmp(verb, "signal")) return kill(atoi(what), 0) ? errno : 0;
    if (!strcmp(verb, "run")) return runs(what);
    if (!strcmp(verb, "mount")) return syscall(SYS_mount, "none", what, "tmpfs", 0, NULL) ? errno : 0;
    if (!strcmp(verb, "core")) return setrlimit(RLIMIT_CORE, &limit) ? errno : 0;
    return ENOSYS;
}

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)error;
    state *s = instance;
    char text[1024], verb[32] = "", what[512] = "", out[64];
    snprintf(text, sizeof text, "%.*s", (int)json.len, json.ptr);
    const char *params = strstr(text, "\"params\":{\"");
    if (params) sscanf(params + strlen("\"params\":{\""), "%31[^:]:%511[^\"]", verb, what);
    if (!strcmp(verb, "abort")) abort();
    snprintf(out, sizeof out, "{\"output\":{\"errno\":%d}}", attempt(verb, what));
    s->runs[0] = run;
    finish(s, run, TB_OK, out);
    return TB_OK;
}

/* Writes what it gets at, one line each. */
static tb_status safe_stop(tb_str config, tb_bytes *error) {
    (void)error;
    char path[256], line[32];
    motor_path(config.ptr, config.len, path, sizeof path);
    snprintf(line, sizeof line, "shadow %d", opens("/etc/shadow", O_RDONLY));
    motor_command(path, line);
    snprintf(line, sizeof line, "udp %d", connects(AF_INET, SOCK_DGRAM, "9"));
    motor_command(path, line);
    return TB_OK;
}
