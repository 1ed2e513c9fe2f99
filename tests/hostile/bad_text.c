/* Sends text that is not UTF-8, null pointers with a length, and JSON of the wrong shape, everywhere. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static tb_status plan(void *, tb_str, tb_str, tb_bytes *);
#define START start
#define PLAN plan
#include "hostile.h"

static const tb_str bad = {"\xff\xfe{}", 4}, null = {NULL, 17};

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    state *s = instance;
    const tb_host *h = s->host;
    const tb_str texts[] = {bad, null, str("nonsense"), str("[]"), str("")};
    for (int i = 0; i < 5; i++) {
        h->log(h->ctx, 99, texts[i], texts[i]);
        h->progress(h->ctx, run, texts[i]);
        h->event(h->ctx, texts[i]);
        h->request(h->ctx, texts[i], texts[i], 0);
    }
    if (has(json, "\"refuse\"")) {
        *error = owned(s, "\xff");
        return 12345;
    }
    if (has(json, "\"null\"")) {
        h->complete(h->ctx, run, TB_OK, (tb_bytes){NULL, 17, NULL, NULL});
    } else if (has(json, "\"empty\"")) {
        h->complete(h->ctx, run, TB_OK, (tb_bytes){NULL, 0, NULL, NULL});
    } else if (has(json, "\"status\"")) {
        h->complete(h->ctx, run, 12345, owned(s, "{\"output\":1}"));
    } else if (has(json, "\"panic\"")) {
        h->complete(h->ctx, run, TB_PANIC, (tb_bytes){NULL, 0, NULL, NULL});
    } else {
        h->complete(h->ctx, run, TB_OK, owned(s, "{\"output\":\"\xff\"}"));
    }
    return TB_OK;
}

static tb_status plan(void *instance, tb_str tool, tb_str args, tb_bytes *out) {
    (void)args;
    *out = owned(instance, has(tool, "empty") ? "{\"actions\":[]}" : has(tool, "shape") ? "{\"actions\":7}" : "\xff");
    return TB_OK;
}
