/* Nothing wrong with it: the control of every experiment. Also plans, concludes, listens, asks and may refuse to close. */
#include "toolbox.h"
#ifndef ID
#define ID "good"
#endif
#ifndef EXTRA
#define EXTRA ",\"subscribes\":[\"speak\"],\"requests\":[\"time.ask\"]"
#endif
/* The kind of its refusal to close. */
#ifndef REFUSAL
#define REFUSAL "BusyError"
#endif
static tb_status plan(void *, tb_str, tb_str, tb_bytes *);
static tb_status conclude(void *, tb_str, tb_str, tb_str, tb_bytes *);
static void message(void *, tb_str, tb_str);
static void on_response(void *, uint64_t, tb_status, tb_str);
static tb_status may_close(void *, tb_bytes *);
#define PLAN plan
#define CONCLUDE conclude
#define MESSAGE message
#define ON_RESPONSE on_response
#define MAY_CLOSE may_close
#include "hostile.h"

static tb_status plan(void *instance, tb_str tool, tb_str args, tb_bytes *out) {
    if (!has(tool, "move")) return TB_UNKNOWN_TOOL;
    if (has(args, "impossible")) {
        *out = owned(instance, "{\"kind\":\"PlanError\",\"message\":\"cannot be done\"}");
        return TB_ERR;
    }
    *out = owned(instance, "{\"actions\":[{\"name\":\"lift\",\"subsystems\":[\"arm\"]},{\"name\":\"turn\"}]}");
    return TB_OK;
}

static tb_status conclude(void *instance, tb_str tool, tb_str args, tb_str report, tb_bytes *out) {
    (void)args;
    if (!has(tool, "move")) return TB_UNKNOWN_TOOL;
    *out = owned(instance, has(report, "\"completed\"") ? "{\"output\":{\"success\":true}}"
                                                        : "{\"error\":{\"kind\":\"MotionError\",\"message\":\"stuck\"}}");
    return TB_OK;
}

static void message(void *instance, tb_str topic, tb_str json) {
    state *s = instance;
    s->messages++;
    event(s, "heard");
    if (has(json, "ask")) {
        uint64_t id = s->host->request(s->host->ctx, str("time.ask"), str("{\"zone\":\"utc\"}"), 500);
        uint64_t none = s->host->request(s->host->ctx, topic, str("{}"), 500);
        snprintf(s->last, sizeof s->last, "%s %s", id ? "asked" : "refused", none ? "asked" : "refused");
    }
}

static void on_response(void *instance, uint64_t request, tb_status status, tb_str json) {
    (void)request;
    state *s = instance;
    snprintf(s->last, sizeof s->last, "answer %u %d", status, has(json, "noon"));
    event(s, "answered");
}

static tb_status may_close(void *instance, tb_bytes *error) {
    state *s = instance;
    if (!strstr(s->config, "recording")) return TB_OK;
    *error = owned(s, "{\"kind\":\"" REFUSAL "\",\"message\":\"recording\"}");
    return TB_BUSY;
}
