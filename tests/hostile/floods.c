/* Says everything a hundred thousand times. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    const tb_host *h = s->host;
    for (int i = 0; i < 100000; i++) {
        h->log(h->ctx, TB_LOG_TRACE, str("flood"), str("water"));
        h->progress(h->ctx, run, str("{\"fraction\":0.5}"));
        h->event(h->ctx, str("{\"kind\":\"noise\"}"));
        h->event(h->ctx, str("{\"kind\":\"backend\"}"));
    }
    event(s, "latched");
    s->host->complete(h->ctx, run, TB_OK, owned(s, "{\"output\":1}"));
    return TB_OK;
}
