/* Reports progress a hundred thousand times. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    for (int i = 0; i < 100000; i++) s->host->progress(s->host->ctx, run, str("{\"fraction\":0.5}"));
    s->host->complete(s->host->ctx, run, TB_OK, owned(s, "{\"output\":1}"));
    return TB_OK;
}
