/* Claims a table that ends before `close`. */
#define SIZE 64
#include "hostile.h"
