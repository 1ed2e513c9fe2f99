/* For LD_PRELOAD: functions wait while the link $STALLED_DISK says `<function> <folder>` and the path is below the folder.
 * Each one that waits adds a line to $STALLED_DISK.reached. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void stand_still(const char *function, const char *path) {
    const char *link = getenv("STALLED_DISK");
    if (!link || !path)
        return;
    for (int waits = 0;; waits = 1) {
        char stall[PATH_MAX], line[PATH_MAX + 64];
        ssize_t length = readlink(link, stall, sizeof stall - 1);
        if (length < 0)
            return;
        stall[length] = 0;
        char *folder = strchr(stall, ' ');
        *folder++ = 0;
        if ((strcmp(stall, "*") && strcmp(stall, function)) || strncmp(path, folder, strlen(folder)))
            return;
        if (!waits) {
            snprintf(line, sizeof line, "%s.reached", link);
            int file = (int)syscall(SYS_openat, AT_FDCWD, line, O_CREAT | O_WRONLY | O_APPEND, 0600);
            int size = snprintf(line, sizeof line, "%s %s\n", function, path);
            if (file < 0 || write(file, line, (size_t)size) != size)
                abort();
            close(file);
        }
        usleep(5000);
    }
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    stand_still("open", path);
    return REAL(open64)(path, flags, mode);
}

int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict found) {
    stand_still("stat", path);
    return REAL(statx)(folder, path, flags, mask, found);
}

int unlink(const char *path) {
    stand_still("unlink", path);
    return REAL(unlink)(path);
}

DIR *opendir(const char *path) {
    stand_still("opendir", path);
    return REAL(opendir)(path);
}
