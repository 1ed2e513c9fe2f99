/* start() takes its time, and moves only after it was halted. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static tb_status halt(void *, tb_str, uint32_t, tb_bytes *);
#define START start
#define HALT halt
#include "hostile.h"
#include "motor.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    char path[256];
    motor_path(s->config, strlen(s->config), path, sizeof path);
    event(s, "moving");
    pthread_mutex_lock(&s->lock);
    while (!s->halts) pthread_cond_wait(&s->changed, &s->lock);
    s->runs[0] = run;
    pthread_mutex_unlock(&s->lock);
    motor_command(path, "move");
    return TB_OK;
}

static tb_status halt(void *instance, tb_str subsystems, uint32_t emergency, tb_bytes *error) {
    (void)subsystems, (void)emergency, (void)error;
    state *s = instance;
    char path[256];
    motor_path(s->config, strlen(s->config), path, sizeof path);
    motor_command(path, "stop");
    pthread_mutex_lock(&s->lock);
    s->halts++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return TB_OK;
}
