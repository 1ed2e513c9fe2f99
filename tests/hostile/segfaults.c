/* start() writes where nothing is. */
#include "toolbox.h"
static tb_status start(void *, uint64_t, tb_str, tb_bytes *);
#define START start
#include "hostile.h"

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    (void)instance, (void)run, (void)json, (void)error;
    *(volatile int *)8 = 1;
    return TB_OK;
}
