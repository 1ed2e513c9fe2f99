/* resume() succeeds, but not before an emergency stop came. */
#include "toolbox.h"
static tb_status resume(void *, tb_bytes *);
#define RESUME resume
#include "hostile.h"

static tb_status resume(void *instance, tb_bytes *error) {
    (void)error;
    state *s = instance;
    event(s, "resuming");
    pthread_mutex_lock(&s->lock);
    while (!s->emergencies) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return TB_OK;
}
