/* Drives a motor for as long as a run waits. `safe_stop` stops it from nothing. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static tb_status halt(void *, tb_str, uint32_t, tb_bytes *);
static tb_status safe_stop(tb_str, tb_bytes *);
static void cancel(void *, uint64_t);
#define START start
#define HALT halt
#define CANCEL cancel
#define SAFE_STOP safe_stop
#define TOOLS_JSON "{\"tools\":[" TOOL("drive", "motion") "," TOOL("look", "read") "]}"
#include "hostile.h"
#include "motor.h"

static volatile int moving; /* one machine, one motor */
static pthread_mutex_t motor = PTHREAD_MUTEX_INITIALIZER;

static void *turn(void *instance) {
    state *s = instance;
    char path[256];
    motor_path(s->config, strlen(s->config), path, sizeof path);
    event(s, "moving");
    for (;;) {
        pthread_mutex_lock(&motor);
        int on = moving;
        if (on) motor_command(path, "move");
        pthread_mutex_unlock(&motor);
        if (!on) return NULL;
        usleep(2000);
    }
}

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)error;
    state *s = instance;
    if (!has(json, "\"drive\"") && !has(json, "\"wait\"")) {
        s->runs[0] = run;
        finish(s, run, TB_OK, "{\"output\":{}}");
        return TB_OK;
    }
    if (has(json, "\"spin\"")) {
        pthread_mutex_lock(&motor);
        char path[256];
        motor_path(s->config, strlen(s->config), path, sizeof path);
        motor_command(path, "move");
        pthread_mutex_unlock(&motor);
        event(s, "moving");
        for (volatile int i = 0;; i++) continue;
    }
    s->runs[1] = run;
    moving = 1;
    pthread_t thread;
    pthread_create(&thread, NULL, turn, s);
    pthread_detach(thread);
    return TB_OK;
}

static tb_status halt(void *instance, tb_str subsystems, uint32_t emergency, tb_bytes *error) {
    (void)subsystems, (void)emergency, (void)error;
    state *s = instance;
    char path[256];
    motor_path(s->config, strlen(s->config), path, sizeof path);
    pthread_mutex_lock(&motor);
    moving = 0;
    motor_command(path, "stop");
    pthread_mutex_unlock(&motor);
    event(s, "halted");
    return TB_OK;
}

static void cancel(void *instance, uint64_t run) {
    finish(instance, run, TB_CANCELLED, "{}");
}

static tb_status safe_stop(tb_str config, tb_bytes *error) {
    (void)error;
    char path[256];
    motor_path(config.ptr, config.len, path, sizeof path);
    motor_command(path, "stop");
    return TB_OK;
}
