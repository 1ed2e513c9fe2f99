/* The toolbox to copy, in C: one tool that greets a person. Build it with make. SPDX-License-Identifier: Apache-2.0 */
#include "toolbox.h"
#include "toolbox_json.h"

static const char MANIFEST[] =
    "{\"id\":\"hello_c\",\"version\":\"0.1.0\",\"description\":\"Greets people, in C\",\"licence\":\"Apache-2.0\"}";
static const char TOOLS[] =
    "{\"tools\":[{\"name\":\"hello_c\",\"description\":\"Greets a person by name: the example in C.\",\"effect\":\"read\","
    "\"argument_schema\":{\"title\":\"HelloArgs\",\"type\":\"object\",\"required\":[\"name\"],"
    "\"properties\":{\"name\":{\"title\":\"Name\",\"type\":\"string\",\"description\":\"Whom to greet.\"}}},"
    "\"output_schema\":{\"title\":\"HelloOutput\",\"type\":\"object\",\"required\":[\"greeting\"],"
    "\"properties\":{\"greeting\":{\"title\":\"Greeting\",\"type\":\"string\"}}}}]}";

struct hello { const tb_host *host; }; /* state lives in the instance, never in statics */

static tb_status hello_open(const tb_host *host, tb_str config, void **instance, tb_bytes *error) {
    struct hello *hello = malloc(sizeof *hello);
    (void)config;
    if (!hello) return tb_refuse(error, TB_ERR, "{\"kind\":\"MemoryError\",\"message\":\"out of memory\"}");
    hello->host = host;
    *instance = hello;
    return TB_OK;
}
static tb_status hello_tools(void *instance, tb_bytes *out) { return (void)instance, *out = tb_constant(TOOLS), TB_OK; }
static tb_status hello_start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    struct hello *hello = instance;
    tb_str action = tb_get(json, "action"), name = tb_string(tb_get(tb_get(action, "params"), "name"));
    if (!tb_is(tb_get(action, "name"), "\"hello_c\""))
        return tb_refuse(error, TB_UNKNOWN_TOOL, "{\"kind\":\"UnknownTool\",\"message\":\"the only tool is hello_c\"}");
    if (!name.ptr) return tb_refuse(error, TB_BAD_ARGS, "{\"kind\":\"ValueError\",\"message\":\"name: expected a string\"}");
    /* A tool that takes longer returns first, and completes from a thread of its own. */
    hello->host->complete(hello->host->ctx, run, TB_OK,
                          tb_print("{\"output\":{\"greeting\":\"Hello, %.*s!\"}}", (int)name.len, name.ptr));
    return TB_OK;
}
static void hello_cancel(void *instance, uint64_t run) { (void)instance, (void)run; }
static tb_status hello_resume(void *instance, tb_bytes *error) { return (void)instance, (void)error, TB_OK; }

const tb_toolbox *toolbox_entry_v1(void) {
    static const tb_toolbox table = { /* without a halt: nothing of it moves */
        .size = sizeof(tb_toolbox), .manifest = {MANIFEST, sizeof MANIFEST - 1},
        .open = hello_open, .tools = hello_tools, .start = hello_start, .cancel = hello_cancel, .resume = hello_resume,
        .close = free,
    };
    return &table;
}
