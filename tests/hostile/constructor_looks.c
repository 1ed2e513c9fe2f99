/* Loads only where the environment of the tests is not to be seen. */
#include "hostile.h"
__attribute__((constructor)) static void look(void) { if (getenv("CARGO_PKG_NAME")) abort(); }
