/* toolbox_json.h: JSON helpers for a small toolbox in C. Optional. SPDX-License-Identifier: Apache-2.0
 *
 * Reads values from the host's JSON without copying, and makes JSON for the host. Never reads beyond the given length.
 * Does not check that the text is JSON; the host has done that.
 */
#ifndef OVOS_TOOLBOX_JSON_H
#define OVOS_TOOLBOX_JSON_H

#include "toolbox.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Whether a value has exactly this text: tb_is(name, "\"hello\""). */
static inline int tb_is(tb_str value, const char *json) {
    return value.len == strlen(json) && memcmp(value.ptr, json, value.len) == 0;
}

/* The text of the value of an object's key; empty if there is none. Keys with escapes are not found. */
static inline tb_str tb_get(tb_str object, const char *key) {
    size_t i, depth = 0, value = 0, from, wanted = strlen(key);
    int found = 0;
    tb_str result = {NULL, 0};
    for (i = 0; i < object.len; i++) {
        char c = object.ptr[i];
        if (c == '"') {
            for (from = ++i; i < object.len && object.ptr[i] != '"'; i++) {
                if (object.ptr[i] == '\\') i++;
            }
            if (i < object.len && depth == 1 && value == 0) {
                found = i - from == wanted && memcmp(object.ptr + from, key, wanted) == 0;
            }
        } else if (c == ':' && depth == 1 && found && value == 0) {
            value = i + 1;
        } else if ((c == ',' || c == '}') && depth == 1 && value != 0) {
            while (i > value && strchr(" \t\r\n", object.ptr[i - 1])) i--;
            while (i > value && strchr(" \t\r\n", object.ptr[value])) value++;
            result.ptr = object.ptr + value;
            result.len = i - value;
            return result;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && depth-- == 0) {
            return result;
        }
    }
    return result;
}

/* A string value without its quotes, escapes unchanged; ptr is NULL if the value is no string. */
static inline tb_str tb_string(tb_str value) {
    tb_str none = {NULL, 0};
    if (value.len < 2 || value.ptr[0] != '"' || value.ptr[value.len - 1] != '"') return none;
    value.ptr++;
    value.len -= 2;
    return value;
}

static inline void tb_free(void *owner, const char *ptr, size_t len) {
    (void)ptr, (void)len;
    free(owner);
}

/* A tb_bytes of a constant. */
static inline tb_bytes tb_constant(const char *json) {
    tb_bytes bytes = {NULL, 0, NULL, NULL};
    bytes.ptr = json;
    bytes.len = strlen(json);
    return bytes;
}

/* A tb_bytes of printf's output; a tb_str is "%.*s" with (int)text.len, text.ptr. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static inline tb_bytes tb_print(const char *format, ...) {
    tb_bytes bytes = {NULL, 0, NULL, NULL};
    char *text = NULL;
    int len;
    va_list list;
    va_start(list, format);
    len = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (len >= 0) text = (char *)malloc((size_t)len + 1);
    if (text == NULL) return tb_constant("{\"error\":{\"kind\":\"MemoryError\",\"message\":\"out of memory\"}}");
    va_start(list, format);
    vsnprintf(text, (size_t)len + 1, format, list);
    va_end(list);
    bytes.ptr = text;
    bytes.len = (size_t)len;
    bytes.owner = text;
    bytes.release = tb_free;
    return bytes;
}

/* A JSON string, with its quotes, of any bytes, such as a file name: printed as %s by tb_print, and freed with free().
 * What JSON cannot hold is escaped; a byte that is no part of UTF-8 becomes U+FFFD. NULL without memory. */
static inline char *tb_quote(const char *text, size_t len) {
    const unsigned char *from = (const unsigned char *)text, *end = from + len;
    char *quoted = (char *)malloc(6 * len + 3), *to = quoted;
    if (quoted == NULL) return NULL;
    *to++ = '"';
    while (from < end) {
        unsigned char c = *from;
        /* How many bytes follow the first one, and which of them the second may be: no overlong form, no surrogate. */
        size_t more = c < 0xc2 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : 0, i;
        unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80, high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (c < 0x20 || c == '"' || c == '\\') {
            to += sprintf(to, "\\u%04x", c);
            from++;
            continue;
        }
        for (i = 1; i <= more; i++) {
            if (from + i >= end || from[i] < low || from[i] > high) break;
            low = 0x80, high = 0xbf;
        }
        if (c >= 0x80 && (more == 0 || i <= more)) {
            to += sprintf(to, "\\ufffd");
            from++;
            continue;
        }
        memcpy(to, from, more + 1);
        to += more + 1, from += more + 1;
    }
    *to++ = '"', *to = '\0';
    return quoted;
}

/* Returns a file beside an output: writes `data` into a new file of the folder that `start` names for content, and makes the
 * payload of complete: {"output": output, "content": [{"type", "mime_type", "path"}]}. The path is `name` behind a number of
 * its own. `type` is image, audio, text or resource; none of the texts needs an escape. Where there is no folder, or the file
 * cannot be written, the output is returned alone.
 * `start` is the JSON that start() got, and is valid until start() returns. */
static inline tb_bytes tb_show(tb_str start, const char *output, const char *type, const char *mime_type,
                               const char *name, const void *data, size_t len) {
    tb_str folder = tb_string(tb_get(tb_get(start, "call"), "content_dir"));
    char path[4096];
    FILE *file = NULL;
    int length, number, written = 0;
    if (folder.ptr != NULL && memchr(folder.ptr, '\\', folder.len) == NULL) {
        for (number = 0; file == NULL && number < 1000; number++) {
            length = snprintf(path, sizeof path, "%.*s/%ld-%d-%s", (int)folder.len, folder.ptr, (long)time(NULL), number,
                              name);
            if (length < 0 || (size_t)length >= sizeof path) break;
            file = fopen(path, "wbx"); /* x: no file of another run */
            if (file == NULL && errno != EEXIST) break;
        }
    }
    if (file != NULL) {
        written = fwrite(data, 1, len, file) == len;
        if (fclose(file) != 0) written = 0;
    }
    if (!written) return tb_print("{\"output\":%s}", output);
    return tb_print("{\"output\":%s,\"content\":[{\"type\":\"%s\",\"mime_type\":\"%s\",\"path\":\"%s\"}]}", output,
                    type, mime_type, path + folder.len + 1);
}

/* Sets the error and returns the status: `return tb_refuse(error, TB_BAD_ARGS, "{\"kind\":..., \"message\":...}")`. */
static inline tb_status tb_refuse(tb_bytes *error, tb_status status, const char *json) {
    if (error != NULL) *error = tb_constant(json);
    return status;
}

#endif /* OVOS_TOOLBOX_JSON_H */
