/* start() takes a quarter of a gigabyte and keeps it. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    size_t much = 256u << 20;
    static char *volatile kept; /* else the compiler sees that it is not read */
    kept = malloc(much);
    if (kept) memset(kept, 1, much);
    s->runs[0] = run;
    event(s, "started");
    return TB_OK;
}
