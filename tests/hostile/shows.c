/* Returns content beside its output, with the C helper; or what is no content. */
#include "toolbox.h"
#include "toolbox_json.h"
static tb_status shows(void *, uint64_t, tb_str, tb_bytes *);
#define START shows
#include "hostile.h"

static tb_status shows(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    state *s = instance;
    tb_bytes payload;
    (void)error;
    if (has(json, "\"nothing\""))
        payload = tb_constant("{\"output\":1,\"content\":[]}");
    else if (has(json, "\"no_list\""))
        payload = tb_constant("{\"output\":1,\"content\":{\"path\":\"a\"}}");
    else if (has(json, "\"beside_error\""))
        payload = tb_constant("{\"error\":{\"kind\":\"E\",\"message\":\"m\"},\"content\":[{\"path\":\"a\"}]}");
    else
        payload = tb_show(json, "{\"shown\":true}", "text", "text/plain", "a.txt", "from C", 6);
    s->host->complete(s->host->ctx, run, has(json, "\"beside_error\"") ? TB_ERR : TB_OK, payload);
    return TB_OK;
}
