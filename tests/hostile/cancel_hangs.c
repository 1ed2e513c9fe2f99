/* cancel() waits for a halt. */
#include "toolbox.h"
static void cancel(void *, uint64_t);
#define CANCEL cancel
#include "hostile.h"

static void cancel(void *instance, uint64_t run) {
    (void)run;
    state *s = instance;
    event(s, "cancelling");
    pthread_mutex_lock(&s->lock);
    while (!s->halts) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}
