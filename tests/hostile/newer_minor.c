/* Built with a later header: its table has a field that this host does not know. */
#include "toolbox.h"
struct newer {
    tb_toolbox known;
    void (*later)(void);
};
static const struct newer newer;
#define SIZE sizeof(struct newer)
#define TABLE (const tb_toolbox *)&newer
#include "hostile.h"

static void later(void) {}
static const char manifest[] = MANIFEST;
static const struct newer newer = {
    .known = {.size = SIZE, .manifest = {manifest, sizeof manifest - 1}, .open = OPEN, .tools = TOOLS, .start = START,
              .cancel = CANCEL, .halt = HALT, .resume = RESUME, .close = CLOSE},
    .later = later,
};
