/* Of its five tools one can be used. */
#define MISSPELT \
    "{\"name\":\"arm\",\"description\":\"a tool\",\"efect\":\"motion\"," \
    "\"argument_schema\":{\"type\":\"object\"},\"output_schema\":{\"type\":\"object\"}}"
#define TOOLS_JSON \
    "{\"tools\":[" TOOL("fine", "read") "," TOOL("fine", "read") "," TOOL("no good", "magic") ",{\"name\":\"bare\"}," \
    MISSPELT "]}"
#include "hostile.h"
