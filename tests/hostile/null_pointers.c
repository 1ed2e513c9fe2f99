/* Its table lacks functions that are required. */
#define START NULL
#define RESUME NULL
#include "hostile.h"
