/* A result of 9 MiB, and one nested 100,000 levels deep. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)error;
    state *s = instance;
    int deep = has(json, "\"deep\"");
    size_t len = deep ? 200011 : 9u << 20;
    char *text = malloc(len + 1);
    memcpy(text, "{\"output\":", 10);
    memset(text + 10, deep ? '[' : '1', len - 11);
    if (deep) memset(text + 10 + 100000, ']', 100000);
    text[len - 1] = '}';
    s->host->complete(s->host->ctx, run, TB_OK, (tb_bytes){text, len, s, free_copy});
    event(s, s->released ? "released" : "leaked");
    return TB_OK;
}
