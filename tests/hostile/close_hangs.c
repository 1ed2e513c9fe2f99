/* close() does not return, and a destructor says that the process was ended by exit(). */
#include "toolbox.h"
static void close_it(void *);
#define CLOSE close_it
#include "hostile.h"

__attribute__((destructor)) static void ended(void) {
    FILE *f = fopen(DONE, "w");
    if (f) fclose(f);
}

static void close_it(void *instance) {
    (void)instance;
    for (;;) pause();
}
