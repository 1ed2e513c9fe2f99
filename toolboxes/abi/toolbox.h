/* toolbox.h: the boundary between ovos-tools and a toolbox. SPDX-License-Identifier: Apache-2.0
 *
 * A toolbox is a shared library that exports ONE symbol, toolbox_entry_v1, which returns a table of functions. One that starts
 * processes of its own exports toolbox_role_v1, too. Data crosses as UTF-8 JSON in (pointer, length) pairs; the shapes are in
 * schemas/abi/.
 *
 * Rules for both sides
 *  - Neither side frees the other's memory. A tb_str is borrowed and valid until the call returns. A tb_bytes is owned
 *    by its receiver, which calls `release` exactly once (a NULL release needs no call).
 *  - No exception, panic or longjmp may cross. C++: catch (...) in every function. Rust: the SDK does it.
 *  - Tables begin with their size. Fields are only appended; read no field beyond the size that you were given.
 *    An incompatible change gets a new symbol, toolbox_entry_v2, and a library may export both.
 *  - Keep state in the instance, never in statics: two generations of a toolbox can be alive in one process.
 *  - Never call signal(), atexit(), setlocale(), setenv() or chdir(): they belong to the whole process.
 *  - The library is never unloaded. Link with -fvisibility=hidden (C++ also -fno-gnu-unique).
 *
 * Threads
 *  [host thread]  open, tools, plan, start, conclude, message, on_response, may_close, close: one thread of the host,
 *                 one call at a time. They return at once, except open and close, which have 10 s.
 *  [any thread]   cancel, halt, resume, safe_stop: at any time between open and close, concurrently with each other and
 *                 with the host thread's calls. Every function of tb_host.
 */
#ifndef OVOS_TOOLBOX_H
#define OVOS_TOOLBOX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a function. A value that is not listed counts as TB_ERR. */
typedef uint32_t tb_status;
#define TB_OK 0u           /* done, or accepted                                                       */
#define TB_ERR 1u          /* failed                                                                  */
#define TB_BAD_ARGS 2u     /* the arguments cannot be used                                            */
#define TB_CANCELLED 3u    /* ended because of cancel or halt                                         */
#define TB_BUSY 4u         /* not possible now                                                        */
#define TB_PANIC 5u        /* the toolbox caught a panic or an exception                              */
#define TB_UNKNOWN_TOOL 6u /* no such tool; from plan and conclude: the host handles this tool itself */

/* Levels of tb_host.log. */
#define TB_LOG_ERROR 1u
#define TB_LOG_WARN 2u
#define TB_LOG_INFO 3u
#define TB_LOG_DEBUG 4u
#define TB_LOG_TRACE 5u

/* Borrowed UTF-8; need not end in NUL; ptr may be NULL when len is 0. */
typedef struct tb_str {
    const char *ptr;
    size_t len;
} tb_str;

/* Owned bytes: the receiver copies the data that it needs and calls release(owner, ptr, len) once. */
typedef struct tb_bytes {
    const char *ptr;
    size_t len;
    void *owner;
    void (*release)(void *owner, const char *ptr, size_t len);
} tb_bytes;

/* The functions of the host. [any thread]; none blocks. Valid until close has returned. */
typedef struct tb_host {
    uint64_t size; /* sizeof(tb_host) of the host */
    void *ctx;     /* first argument of every function below */
    /* target: origin of the message ("my_toolbox::arm"); message: one line. */
    void (*log)(void *ctx, uint32_t level, tb_str target, tb_str message);
    /* Completes a run: exactly once for every accepted start. json: {"output": ..., "content"?: [...]} or
     * {"error": {"kind","message","data"?}}. content: at most 8 of {"type","mime_type","path"|"data"|"uri","title"?}, where a
     * path is relative to call.content_dir of start. May be called before start has returned. A second call, or one for an unknown run, is counted and dropped. */
    void (*complete)(void *ctx, uint64_t run, tb_status status, tb_bytes json);
    /* json: {"fraction"?,"message"?,"data"?} */
    void (*progress)(void *ctx, uint64_t run, tb_str json);
    /* json: {"kind","severity"?,"data"?} */
    void (*event)(void *ctx, tb_str json);
    /* Sends a request to a bus topic listed in the manifest's `requests`. Returns the id that is passed to on_response, or
     * 0 if the topic is not listed or too many requests are in progress. json: the message's data. */
    uint64_t (*request)(void *ctx, tb_str topic, tb_str json, uint32_t timeout_ms);
} tb_host;

/* The functions of a toolbox. Functions marked optional may be NULL.
 * `out` and `error` are written only where the comment says so; on failure they hold {"kind","message","data"?}. */
typedef struct tb_toolbox {
    uint64_t size;   /* sizeof(tb_toolbox) of the toolbox */
    tb_str manifest; /* static JSON: {"id","version","description","licence","exclusive"?,"yields"?,"config_schema"?,"subscribes"?,"requests"?,
                      "simulated_by_default"?,"needs_section"?,"guide"?} */

    /* [host thread] Makes an instance. config: the toolbox's section as JSON. Brings the backend to rest; never arms,
     * homes, enables torque or moves. `host` lives until close has returned. If not TB_OK, *error says why. */
    tb_status (*open)(const tb_host *host, tb_str config, void **instance, tb_bytes *error);
    /* [host thread] *out: {"tools": [...]}. Called after open and after the event `tools_changed`. An unusable tool, such
     * as one without an `effect`, is left out; the log and `ovos-tools check` say why. Optional keys of a tool: "category",
     * "timeout_ms", "audience" ("model"; "person" or "unready" for what doors do not show models), "for_models" (a merge patch of the
     * `properties` of "argument_schema" for exports and doors: bounds, null to leave an argument out). */
    tb_status (*tools)(void *instance, tb_bytes *out);
    /* [host thread] optional. *out: {"actions": [...], "sentences"?: {"en": "..."}}, at least one action; or a failure.
     * Pure, fast, no IO; limit 1 s. A sentence says in its language what the call would do, to whom has to confirm it.
     * TB_UNKNOWN_TOOL: the host makes a one-action plan for this tool, and does not call plan for it again until it
     * has called tools(). */
    tb_status (*plan)(void *instance, tb_str tool, tb_str args, tb_bytes *out);
    /* [host thread] Starts an action and returns at once. TB_OK: host.complete returns the result later. Otherwise the
     * start was refused, nothing was started, no complete follows, and *error says why. Run ids are never reused. */
    tb_status (*start)(void *instance, uint64_t run, tb_str json, tb_bytes *error);
    /* [any thread] Asks a run to end. Idempotent, never blocks, ignores an unknown run. The run still completes. */
    void (*cancel)(void *instance, uint64_t run);
    /* [host thread] optional. report -> *out: {"output": ...} or {"error": {...}}. Limit 1 s.
     * TB_UNKNOWN_TOOL: the host makes the answers of this tool from the reports itself, and does not call conclude for
     * it again until it has called tools(). */
    tb_status (*conclude)(void *instance, tb_str tool, tb_str args, tb_str report, tb_bytes *out);
    /* [any thread] Sends the command that ends motion of these subsystems (JSON array of names) and returns within
     * 50 ms. emergency 0: hold position with power. emergency 1: as the configuration says. After a call with
     * emergency 1 there is none with emergency 0 until resume has returned TB_OK. A call in progress at that time has
     * its 50 ms to return; after that the emergency call runs concurrently with it, and again after it.
     * NULL if nothing moves: tools of effect motion, safe and stop are left out then. */
    tb_status (*halt)(void *instance, tb_str subsystems, uint32_t emergency, tb_bytes *error);
    /* [any thread] Called before the latch is lifted. Never moves. May refuse; *error says why. */
    tb_status (*resume)(void *instance, tb_bytes *error);
    /* [host thread] optional. A message on a topic of `subscribes`. json: the message's data. */
    void (*message)(void *instance, tb_str topic, tb_str json);
    /* [host thread] optional. The answer to host.request: TB_OK and the answer's data, or TB_ERR and a failure. */
    void (*on_response)(void *instance, uint64_t request, tb_status status, tb_str json);
    /* [host thread] optional. TB_BUSY refuses a reload; *error says why ("recording"). */
    tb_status (*may_close)(void *instance, tb_bytes *error);
    /* [any thread] optional. Brings the hardware to rest without an instance. */
    tb_status (*safe_stop)(tb_str config, tb_bytes *error);
    /* [host thread] Ends the instance and joins every thread it started. No host function may be called afterwards. */
    void (*close)(void *instance);
} tb_toolbox;

/* The exported symbol of every toolbox. Returns a table that lives as long as the library. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const tb_toolbox *toolbox_entry_v1(void);

/* Optional second symbol: the work of a process that the toolbox itself has started, as
 *     /proc/self/exe toolbox-host --role NAME FILE
 * with one end of a socket pair at its stdin; FILE is the file that this library was loaded from. The process has the
 * confinement of the toolbox, and its memory counts for the toolbox. The kernel ends it with SIGKILL when the thread that
 * started it ends, so that thread lives as long as the process. leash: the socket, which is the role's to close; its end says
 * that the toolbox is gone, and the role ends then. Called once, on the only thread of the process; no function of the table is
 * called there. Returns TB_OK when the work is over, TB_UNKNOWN_TOOL where there is no such role. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
tb_status toolbox_role_v1(tb_str role, int leash);

#ifdef __cplusplus
}
#endif
#endif /* OVOS_TOOLBOX_H */
