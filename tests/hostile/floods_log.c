/* Logs a hundred thousand long lines. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    static char line[4000];
    memset(line, 'x', sizeof line - 1);
    for (int i = 0; i < 100000; i++) s->host->log(s->host->ctx, TB_LOG_INFO, str("flood"), str(line));
    for (int i = 0; i < 1000; i++) fprintf(stderr, "%s\n", line);
    s->host->complete(s->host->ctx, run, TB_OK, owned(s, "{\"output\":1}"));
    return TB_OK;
}
