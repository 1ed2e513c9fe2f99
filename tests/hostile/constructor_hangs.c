/* Does not come back from being loaded. */
#include "hostile.h"
__attribute__((constructor)) static void hang(void) {
    fprintf(stderr, "waiting for a licence server\n");
    for (;;) pause();
}
