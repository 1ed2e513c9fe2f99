/* start() closes every descriptor of the process. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)json, (void)error;
    state *s = instance;
    for (int fd = 3; fd < 1024; fd++) close(fd);
    s->runs[0] = run;
    return TB_OK;
}
