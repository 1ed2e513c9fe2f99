/* The first halt() waits for a second one. */
#include "toolbox.h"
static tb_status halt(void *, tb_str, uint32_t, tb_bytes *);
#define HALT halt
#include "hostile.h"

static tb_status halt(void *instance, tb_str subsystems, uint32_t emergency, tb_bytes *error) {
    (void)subsystems, (void)emergency, (void)error;
    state *s = instance;
    pthread_mutex_lock(&s->lock);
    s->halts++;
    pthread_cond_broadcast(&s->changed);
    while (s->halts < 2) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return TB_OK;
}
