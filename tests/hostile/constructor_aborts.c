/* Aborts while it is loaded. */
#include "hostile.h"
__attribute__((constructor)) static void crash(void) { abort(); }
