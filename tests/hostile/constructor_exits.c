/* Ends the process while it is loaded, politely. */
#include "hostile.h"
__attribute__((constructor)) static void leave(void) { _exit(0); }
