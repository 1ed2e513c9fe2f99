/* start() never returns and keeps a processor busy. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)run, (void)json, (void)error;
    event(instance, "started");
    for (volatile int i = 0;; i++) continue;
}
