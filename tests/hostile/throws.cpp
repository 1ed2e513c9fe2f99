// What throws.c starts with: nothing of C can throw.
#include "toolbox.h"

#include <stdexcept>

extern "C" tb_status throwing_start(void *, uint64_t, tb_str, tb_bytes *) {
    throw std::runtime_error("thrown and not caught");
}
