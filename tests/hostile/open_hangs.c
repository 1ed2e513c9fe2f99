/* open() never returns. */
#include "toolbox.h"
static tb_status open_it(const tb_host *host, tb_str config, void **instance, tb_bytes *error);
#define OPEN open_it
#include "hostile.h"

static tb_status open_it(const tb_host *host, tb_str config, void **instance, tb_bytes *error) {
    (void)host, (void)config, (void)instance, (void)error;
    for (;;) pause();
}
