/* cancel() and halt() do nothing; the run is completed by close(). */
#include "toolbox.h"
static void cancel(void *instance, uint64_t run) { (void)instance, (void)run; }
static tb_status halt(void *instance, tb_str subsystems, uint32_t emergency, tb_bytes *error) {
    (void)instance, (void)subsystems, (void)emergency, (void)error;
    return TB_OK;
}
#define CANCEL cancel
#define HALT halt
#include "hostile.h"
