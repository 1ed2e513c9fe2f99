/* Calls the toolbox as the service does, without one. Run it with make test. SPDX-License-Identifier: Apache-2.0 */
#include "toolbox.h"

#include <stdio.h>
#include <string.h>

/* What a run completed with. A run that completes from a thread of its own has to be waited for. */
static char answered[256];
static int failures;

static void complete(void *ctx, uint64_t run, tb_status status, tb_bytes json) {
    (void)ctx, (void)run;
    snprintf(answered, sizeof answered, "%u %.*s", status, (int)json.len, json.ptr);
    if (json.release) json.release(json.owner, json.ptr, json.len);
}
static void log_line(void *ctx, uint32_t level, tb_str target, tb_str text) { (void)ctx, (void)level, (void)target, (void)text; }
static void progress(void *ctx, uint64_t run, tb_str json) { (void)ctx, (void)run, (void)json; }
static void event(void *ctx, tb_str json) { (void)ctx, (void)json; }
static uint64_t request(void *ctx, tb_str topic, tb_str json, uint32_t timeout_ms) {
    (void)ctx, (void)topic, (void)json, (void)timeout_ms;
    return 0;
}

static tb_str text(const char *json) { return (tb_str){json, strlen(json)}; }

static void starts(const tb_toolbox *toolbox, void *instance, const char *json, tb_status status, const char *expected) {
    tb_bytes error = {NULL, 0, NULL, NULL};
    answered[0] = 0;
    tb_status found = toolbox->start(instance, 1, text(json), &error);
    if (error.release) error.release(error.owner, error.ptr, error.len);
    if (found == status && strcmp(answered, expected) == 0) return;
    fprintf(stderr, "%s\n  gives %u %s\n  expected %u %s\n", json, found, answered, status, expected);
    failures++;
}

int main(void) {
    const tb_host host = {sizeof host, NULL, log_line, complete, progress, event, request};
    const tb_toolbox *toolbox = toolbox_entry_v1();
    void *instance = NULL;
    tb_bytes error = {NULL, 0, NULL, NULL};
    if (toolbox->open(&host, text("{}"), &instance, &error) != TB_OK) return fprintf(stderr, "open fails\n"), 1;
    starts(toolbox, instance, "{\"action\":{\"name\":\"hello_c\",\"params\":{\"name\":\"Ada\"}}}", TB_OK,
           "0 {\"output\":{\"greeting\":\"Hello, Ada!\"}}");
    starts(toolbox, instance, "{\"action\":{\"name\":\"hello_c\",\"params\":{}}}", TB_BAD_ARGS, "");
    starts(toolbox, instance, "{\"action\":{\"name\":\"nope\",\"params\":{}}}", TB_UNKNOWN_TOOL, "");
    toolbox->close(instance);
    return failures != 0;
}
