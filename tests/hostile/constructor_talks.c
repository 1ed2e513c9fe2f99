/* Prints while it is loaded, and crashes when its process ends. */
#include "hostile.h"
__attribute__((constructor)) static void talk(void) { printf("welcome to the toolbox, half a line"); fflush(stdout); }
__attribute__((destructor)) static void crash(void) { if (!getenv("CARGO_PKG_NAME")) *(volatile int *)0 = 1; }
