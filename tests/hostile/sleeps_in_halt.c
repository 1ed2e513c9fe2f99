/* Once something moves, halt() does not return in any time that would be of use; `safe_stop` works. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static tb_status halt(void *, tb_str, uint32_t, tb_bytes *);
static tb_status safe_stop(tb_str, tb_bytes *);
#define START start
#define HALT halt
#define SAFE_STOP safe_stop
#include "hostile.h"
#include "motor.h"

static volatile int moving;

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    char path[256];
    motor_path(s->config, strlen(s->config), path, sizeof path);
    motor_command(path, "move");
    moving = 1;
    s->runs[0] = run;
    event(s, "moving");
    return TB_OK;
}

static tb_status halt(void *instance, tb_str subsystems, uint32_t emergency, tb_bytes *error) {
    (void)instance, (void)subsystems, (void)emergency, (void)error;
    if (moving) sleep(3600);
    return TB_OK;
}

static tb_status safe_stop(tb_str config, tb_bytes *error) {
    (void)error;
    char path[256];
    motor_path(config.ptr, config.len, path, sizeof path);
    motor_command(path, "stop");
    return TB_OK;
}
