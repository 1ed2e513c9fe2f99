/* Ends a run only when a message arrives. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
static void message(void *, tb_str, tb_str);
#define EXTRA ",\"subscribes\":[\"speak\"]"
#define START start
#define MESSAGE message
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    s->runs[0] = run;
    event(s, "started");
    return TB_OK;
}

static void message(void *instance, tb_str topic, tb_str json) {
    (void)topic, (void)json;
    state *s = instance;
    finish(s, s->runs[0], TB_OK, "{\"output\":\"late\"}");
    event(s, "completed");
}
