/* Everything about its manifest is wrong. */
#define MANIFEST "{\"id\":\"All Arms\",\"exclusive\":1,\"subscribes\":[\"ovos.tools.invoke\"],\"config_schema\":{\"type\":3}}"
#include "hostile.h"
