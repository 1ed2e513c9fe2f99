/* A machine that is a file: each command to its motor is a line. The file's path is `motor` in the configuration. */
#ifndef MOTOR_H
#define MOTOR_H
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void motor_path(const char *config, size_t len, char *path, size_t size) {
    char text[512];
    snprintf(text, sizeof text, "%.*s", (int)len, config);
    const char *from = strstr(text, "\"motor\":\"");
    *path = 0;
    if (!from) return;
    from += strlen("\"motor\":\"");
    const char *to = strchr(from, '"');
    if (to) snprintf(path, size, "%.*s", (int)(to - from), from);
}

static void motor_command(const char *path, const char *command) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    char line[32];
    int len = snprintf(line, sizeof line, "%s\n", command);
    if (write(fd, line, len) != len) perror("motor");
    close(fd);
}
#endif
