/* Its entry returns no table. */
#define TABLE NULL
#include "hostile.h"
