/* The tools that the conformance suite of the Model Context Protocol calls by name. SPDX-License-Identifier: Apache-2.0
 *
 * Without the tools that ask the user or write a log: what the suite calls there is in tests/doors/mcp/baseline.yml. */
#include "toolbox.h"
#include "toolbox_json.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static const char MANIFEST[] = "{\"id\":\"conformance\",\"version\":\"1\",\"description\":\"Tools that a test suite calls\","
                               "\"licence\":\"Apache-2.0\"}";

#define TOOL(name, schema)                                                                                       \
    "{\"name\":\"" name "\",\"description\":\"A tool of the suite.\",\"effect\":\"read\",\"argument_schema\":" schema \
    ",\"output_schema\":{\"type\":\"object\"}}"
#define NOTHING "{\"type\":\"object\",\"properties\":{}}"
/* The schema that the suite compares word by word. */
#define SCHEMA_2020_12                                                                                           \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"$defs\":{\"address\":{"    \
    "\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},"              \
    "\"city\":{\"type\":\"string\"}}}},\"properties\":{\"name\":{\"type\":\"string\"},"                             \
    "\"address\":{\"$ref\":\"#/$defs/address\"},\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]}," \
    "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]}," \
    "{\"required\":[\"email\"]}]}],\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"               \
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"    \
    "\"additionalProperties\":false}"
#define HEADER                                                                                                   \
    "{\"type\":\"object\",\"required\":[\"region\"],\"properties\":{\"region\":{\"type\":\"string\"," \
    "\"x-mcp-header\":\"Region\"}}}"
#define NAME "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}"
#define SECONDS                                                                                                  \
    "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"integer\"},\"label\":{\"type\":\"string\"}}}"
#define TOOLS                                                                                                    \
    TOOL("test_simple_text", NOTHING) "," TOOL("test_error_handling", NOTHING) ","                                \
    TOOL("test_tool_with_progress", NOTHING) "," TOOL("test_streaming_elicitation", NOTHING) ","                  \
    TOOL("test_logging_tool", NOTHING) "," TOOL("test_trigger_tool_change", NOTHING) ","                          \
    TOOL("test_image_content", NOTHING) "," TOOL("test_audio_content", NOTHING) ","                                \
    TOOL("test_embedded_resource", NOTHING) "," TOOL("test_multiple_content_types", NOTHING) ","                   \
    TOOL("test_header", HEADER) "," TOOL("json_schema_2020_12_tool", SCHEMA_2020_12) ","                          \
    TOOL("greet", NAME) "," TOOL("slow_compute", SECONDS) "," TOOL("failing_job", NOTHING)

/* A PNG of one pixel, and a WAV without a sample. */
#define IMAGE                                                                                                     \
    "{\"type\":\"image\",\"mime_type\":\"image/png\",\"data\":\"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQ" \
    "DJ/pLvAAAAAElFTkSuQmCC\"}"
#define AUDIO                                                                                                     \
    "{\"type\":\"audio\",\"mime_type\":\"audio/wav\",\"data\":\"UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=\"}"
#define RESOURCE "{\"type\":\"resource\",\"mime_type\":\"text/plain\",\"data\":\"VGhpcyBpcyBhIHJlc291cmNlLg==\"}"
#define SHOWN(content) "{\"output\":{\"text\":\"Content follows.\"},\"content\":[" content "]}"

static const struct {
    const char *tool, *answer;
} SHOWS[] = {
    {"\"test_image_content\"", SHOWN(IMAGE)},
    {"\"test_audio_content\"", SHOWN(AUDIO)},
    {"\"test_embedded_resource\"", SHOWN(RESOURCE)},
    {"\"test_multiple_content_types\"", SHOWN(IMAGE "," RESOURCE)},
};

/* How many cancelled runs are remembered: more than run at the same time. */
#define CANCELLED 64

struct suite {
    const tb_host *host;
    atomic_int changes; /* how often the list of tools changed */
    _Atomic uint64_t cancelled[CANCELLED];
    atomic_uint cancels;
};
struct slow {
    struct suite *suite;
    uint64_t run;
    long ticks; /* how long it takes, in units of TICK */
    int fails;
};
/* A second, and something more: what takes one is to be longer than a client waits, also where a computer is slow. */
#define A_SECOND 60
static const struct timespec TICK = {0, 20 * 1000 * 1000};

static tb_status open(const tb_host *host, tb_str config, void **instance, tb_bytes *error) {
    struct suite *suite = calloc(1, sizeof *suite);
    (void)config;
    if (!suite) return tb_refuse(error, TB_ERR, "{\"kind\":\"MemoryError\",\"message\":\"out of memory\"}");
    suite->host = host;
    *instance = suite;
    return TB_OK;
}

static tb_status tools(void *instance, tb_bytes *out) {
    struct suite *suite = instance;
    int changes = atomic_load(&suite->changes);
    if (changes == 0)
        *out = tb_constant("{\"tools\":[" TOOLS "]}");
    else
        *out = tb_print("{\"tools\":[" TOOLS ",%s%d%s]}", "{\"name\":\"changed_", changes,
                        "\",\"description\":\"A new tool.\",\"effect\":\"read\",\"argument_schema\":" NOTHING
                        ",\"output_schema\":{\"type\":\"object\"}}");
    return TB_OK;
}

static void done(struct suite *suite, uint64_t run, const char *json) {
    suite->host->complete(suite->host->ctx, run, TB_OK, tb_constant(json));
}

static void *progress(void *argument) {
    struct slow slow = *(struct slow *)argument;
    const struct timespec pause = {0, 150 * 1000 * 1000};
    tb_str fractions[] = {{"{\"fraction\":0.3}", 16}, {"{\"fraction\":0.6}", 16}};
    free(argument);
    for (int i = 0; i < 2; i++) {
        nanosleep(&pause, NULL);
        slow.suite->host->progress(slow.suite->host->ctx, slow.run, fractions[i]);
    }
    nanosleep(&pause, NULL);
    done(slow.suite, slow.run, "{\"output\":{\"text\":\"done\"}}");
    return NULL;
}

static int is_cancelled(struct slow *slow) {
    for (int i = 0; i < CANCELLED; i++)
        if (atomic_load(&slow->suite->cancelled[i]) == slow->run) return 1;
    return 0;
}

static void *compute(void *argument) {
    struct slow slow = *(struct slow *)argument;
    const tb_host *host = slow.suite->host;
    free(argument);
    for (long i = 0; i < slow.ticks; i++) {
        nanosleep(&TICK, NULL);
        if (!is_cancelled(&slow)) continue;
        host->complete(host->ctx, slow.run, TB_CANCELLED,
                       tb_constant("{\"error\":{\"kind\":\"CancelledError\",\"message\":\"it was cancelled\"}}"));
        return NULL;
    }
    if (slow.fails)
        host->complete(host->ctx, slow.run, TB_ERR,
                       tb_constant("{\"error\":{\"kind\":\"RuntimeError\",\"message\":\"This job always fails\"}}"));
    else
        done(slow.suite, slow.run, "{\"output\":{\"text\":\"done\"}}");
    return NULL;
}

/* Carries a run out in a thread of its own. */
static tb_status later(struct slow slow, void *(*body)(void *), tb_bytes *error) {
    struct slow *own = malloc(sizeof *own);
    pthread_t thread;
    if (own) *own = slow;
    if (!own || pthread_create(&thread, NULL, body, own) != 0) {
        free(own);
        return tb_refuse(error, TB_ERR, "{\"kind\":\"MemoryError\",\"message\":\"no thread\"}");
    }
    pthread_detach(thread);
    return TB_OK;
}

static tb_status start(void *instance, uint64_t run, tb_str json, tb_bytes *error) {
    struct suite *suite = instance;
    tb_str action = tb_get(json, "action"), name = tb_get(action, "name");
    if (tb_is(name, "\"test_error_handling\""))
        return tb_refuse(error, TB_ERR, "{\"kind\":\"RuntimeError\",\"message\":\"This tool always fails\"}");
    if (tb_is(name, "\"test_tool_with_progress\"")) return later((struct slow){suite, run, 0, 0}, progress, error);
    if (tb_is(name, "\"slow_compute\"")) {
        /* The text of a number ends where its object does. */
        tb_str seconds = tb_get(tb_get(action, "params"), "seconds");
        return later((struct slow){suite, run, seconds.ptr ? A_SECOND * strtol(seconds.ptr, NULL, 10) : 0, 0}, compute, error);
    }
    if (tb_is(name, "\"failing_job\"")) return later((struct slow){suite, run, A_SECOND, 1}, compute, error);
    if (tb_is(name, "\"test_trigger_tool_change\"")) {
        tb_str event = {"{\"kind\":\"tools_changed\"}", 24};
        atomic_fetch_add(&suite->changes, 1);
        suite->host->event(suite->host->ctx, event);
    }
    for (size_t i = 0; i < sizeof SHOWS / sizeof *SHOWS; i++)
        if (tb_is(name, SHOWS[i].tool)) return done(suite, run, SHOWS[i].answer), TB_OK;
    done(suite, run, "{\"output\":{\"text\":\"This is a simple text response for testing.\"}}");
    return TB_OK;
}
static void cancel(void *instance, uint64_t run) {
    struct suite *suite = instance;
    atomic_store(&suite->cancelled[atomic_fetch_add(&suite->cancels, 1) % CANCELLED], run);
}
static tb_status resume(void *instance, tb_bytes *error) { return (void)instance, (void)error, TB_OK; }

const tb_toolbox *toolbox_entry_v1(void) {
    static const tb_toolbox table = { /* without a halt: nothing of it moves */
        .size = sizeof(tb_toolbox), .manifest = {MANIFEST, sizeof MANIFEST - 1},
        .open = open, .tools = tools, .start = start, .cancel = cancel, .resume = resume, .close = free,
    };
    return &table;
}
