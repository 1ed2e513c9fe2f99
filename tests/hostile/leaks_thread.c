/* Leaves a thread behind that goes on calling the host after close(). */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static void close_it(void *);
#define START start
#define CLOSE close_it
#include "hostile.h"

static void *haunt(void *arg) {
    state *s = arg;
    const tb_host *h = s->host;
    pthread_mutex_lock(&s->lock);
    while (!s->messages) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < 1000; i++) {
        h->log(h->ctx, TB_LOG_INFO, str("ghost"), str("still here"));
        h->progress(h->ctx, 1, str("{}"));
        h->event(h->ctx, str("{\"kind\":\"haunted\"}"));
        h->request(h->ctx, str("x"), str("{}"), 1);
        h->complete(h->ctx, 1, TB_OK, owned(s, "{\"output\":1}"));
    }
    /* The service is gone from here; a file is all that is left to speak through. */
    FILE *f = fopen(DONE, "w");
    if (f) fclose(f);
    return NULL;
}

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)run, (void)json, (void)error;
    pthread_t thread;
    pthread_create(&thread, NULL, haunt, instance);
    event(instance, "started");
    return TB_OK;
}

static void close_it(void *instance) {
    state *s = instance;
    pthread_mutex_lock(&s->lock);
    s->messages = 1;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
