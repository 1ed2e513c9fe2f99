/* start() does not return until the toolbox was halted or cancelled. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static void cancel(void *, uint64_t);
#define START start
#define CANCEL cancel
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)error;
    state *s = instance;
    if (!has(json, "\"wait\"")) {
        char out[128];
        pthread_mutex_lock(&s->lock);
        snprintf(out, sizeof out, "{\"output\":{\"halts\":%d,\"cancels\":%d}}", s->halts, s->cancels);
        pthread_mutex_unlock(&s->lock);
        event(s, "ran");
        s->host->complete(s->host->ctx, run, TB_OK, owned(s, out));
        return TB_OK;
    }
    event(s, "hanging");
    pthread_mutex_lock(&s->lock);
    while (!s->halts && !s->cancels) pthread_cond_wait(&s->changed, &s->lock);
    s->runs[0] = run;
    pthread_mutex_unlock(&s->lock);
    return TB_OK;
}

static void cancel(void *instance, uint64_t run) {
    state *s = instance;
    pthread_mutex_lock(&s->lock);
    s->cancels++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    event(s, "cancelled");
    (void)run;
}
