/* Ends each run two times, with different results. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    s->host->complete(s->host->ctx, run, TB_OK, owned(s, "{\"output\":\"first\"}"));
    s->host->complete(s->host->ctx, run, TB_ERR, owned(s, "{\"error\":{\"kind\":\"E\",\"message\":\"second\"}}"));
    event(s, s->released == 2 ? "released_both" : "leaked");
    return TB_OK;
}
