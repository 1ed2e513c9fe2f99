/* open() never returns. */
#include "toolbox.h"
static tb_status open_it(const tb_host *host, tb_str config, void **instance, tb_bytes *error);
#define OPEN open_it
#include "hostile.h"

static tb_status open_it(const tb_host *host, tb_str config, void **instance, tb_bytes *error) {
    (void)config, (void)instance, (void)error;
    host->event(host->ctx, str("{\"kind\":\"opening\"}"));
    for (;;) pause();
}
