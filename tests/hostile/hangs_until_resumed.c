/* plan(), start() and conclude() do not return until it is resumed. */
#include "toolbox.h"
static tb_status plan(void *, tb_str, tb_str, tb_bytes *);
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static tb_status conclude(void *, tb_str, tb_str, tb_str, tb_bytes *);
static tb_status resume(void *, tb_bytes *);
#define PLAN plan
#define START start
#define CONCLUDE conclude
#define RESUME resume
#include "hostile.h"

static int resumed;

static void hang(state *s) {
    event(s, "hanging");
    pthread_mutex_lock(&s->lock);
    while (!resumed) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static tb_status plan(void *instance, tb_str tool, tb_str args, tb_bytes *out) {
    (void)tool, (void)args, (void)out;
    hang(instance);
    return TB_UNKNOWN_TOOL;
}

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    hang(s);
    s->host->complete(s->host->ctx, run, TB_OK, owned(s, "{\"output\":1}"));
    return TB_OK;
}

static tb_status conclude(void *instance, tb_str tool, tb_str args, tb_str report, tb_bytes *out) {
    (void)tool, (void)args, (void)report, (void)out;
    hang(instance);
    return TB_UNKNOWN_TOOL;
}

static tb_status resume(void *instance, tb_bytes *error) {
    (void)error;
    state *s = instance;
    pthread_mutex_lock(&s->lock);
    resumed = 1;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return TB_OK;
}
