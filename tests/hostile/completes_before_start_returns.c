/* Another thread ends the run while start() is still under way; then start() claims that it was refused. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

struct job { state *s; uint64_t run; };

static void *work(void *arg) {
    struct job *job = arg;
    job->s->host->complete(job->s->host->ctx, job->run, TB_OK, owned(job->s, "{\"output\":\"early\"}"));
    return NULL;
}

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    state *s = instance;
    struct job job = {s, run};
    pthread_t thread;
    pthread_create(&thread, NULL, work, &job);
    pthread_join(thread, NULL);
    if (!has(json, "refuse")) return TB_OK;
    *error = owned(s, "{\"kind\":\"E\",\"message\":\"refused after all\"}");
    return TB_ERR;
}
