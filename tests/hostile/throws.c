/* start() lets a C++ exception out. */
#include "toolbox.h"
/* In throws.cpp. */
tb_status throwing_start(void *instance, uint64_t run, tb_str json, tb_bytes *error);
#define START throwing_start
#include "hostile.h"
