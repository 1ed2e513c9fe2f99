/* Notes in which order halts come. start() takes a moment, so that halts come while it runs. With GENTLE_US a gentle halt
 * takes that long before it does anything. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static tb_status halt(void *, tb_str, uint32_t, tb_bytes *);
static tb_status resume(void *, tb_bytes *);
#define START start
#define HALT halt
#define RESUME resume
#include "hostile.h"

/* In `messages`: gentle halts after an emergency one. In `cancels`: resumes whose last halt was a gentle one. */
static int stopped, last_was_gentle;

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)error;
    state *s = instance;
    char out[128];
    if (has(json, "\"slow\"")) usleep(50);
    pthread_mutex_lock(&s->lock);
    snprintf(out, sizeof out, "{\"output\":{\"gentle\":%d,\"emergencies\":%d,\"after\":%d,\"undone\":%d}}", s->halts,
             s->emergencies, s->messages, s->cancels);
    pthread_mutex_unlock(&s->lock);
    s->host->complete(s->host->ctx, run, TB_OK, owned(s, out));
    return TB_OK;
}

static tb_status halt(void *instance, tb_str subsystems, uint32_t emergency, tb_bytes *error) {
    (void)subsystems, (void)error;
    state *s = instance;
#ifdef GENTLE_US
    if (!emergency) {
        event(s, "halting");
        usleep(GENTLE_US);
    }
#endif
    pthread_mutex_lock(&s->lock);
    if (emergency) {
        s->emergencies++;
        stopped = 1;
    } else {
        s->halts++;
        s->messages += stopped;
    }
    last_was_gentle = !emergency;
    pthread_mutex_unlock(&s->lock);
    return TB_OK;
}

static tb_status resume(void *instance, tb_bytes *error) {
    (void)error;
    state *s = instance;
    pthread_mutex_lock(&s->lock);
    s->cancels += last_was_gentle;
    stopped = 0;
    pthread_mutex_unlock(&s->lock);
    return TB_OK;
}
