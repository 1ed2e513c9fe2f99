/* Loads only where the environment of its section is to be seen, as a library of a ROS installation does. */
#include "hostile.h"
__attribute__((constructor)) static void look(void) {
    if (getenv("AMENT_PREFIX_PATH")) return;
    fprintf(stderr, "where is ROS\n");
    _exit(3);
}
