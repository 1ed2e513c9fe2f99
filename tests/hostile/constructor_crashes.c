/* Dies while it is loaded. */
#include "hostile.h"
__attribute__((constructor)) static void crash(void) {
    fprintf(stderr, "about to\ncrash\n");
    *(volatile int *)0 = 1;
}
