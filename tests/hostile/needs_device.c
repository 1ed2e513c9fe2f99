/* Opens only while a file exists, as a toolbox whose device is unplugged. */
#include "toolbox.h"
static tb_status open_device(const tb_host *, tb_str, void **, tb_bytes *);
#define OPEN open_device
#include "hostile.h"

static tb_status open_device(const tb_host *host, tb_str config, void **instance, tb_bytes *error) {
    if (access(DEVICE, F_OK) != 0) {
        *error = owned(NULL, "{\"kind\":\"HardwareError\",\"message\":\"the device is unplugged\"}");
        return TB_ERR;
    }
    state *s = calloc(1, sizeof *s);
    s->host = host;
    pthread_mutex_init(&s->lock, NULL);
    snprintf(s->config, sizeof s->config, "%.*s", (int)config.len, config.ptr);
    *instance = s;
    return TB_OK;
}
