/* A library, but no toolbox. */
#define NO_ENTRY
#include "hostile.h"
__attribute__((visibility("default"))) int something_else(void) { return table.size == 0; }
