/* Of its six tools one can be used. */
#define MISSPELT \
    "{\"name\":\"arm\",\"description\":\"a tool\",\"efect\":\"motion\"," \
    "\"argument_schema\":{\"type\":\"object\"},\"output_schema\":{\"type\":\"object\"}}"
#define LOOKS_AHEAD \
    "{\"name\":\"ahead\",\"description\":\"a tool\",\"effect\":\"read\",\"argument_schema\":{\"type\":\"object\"," \
    "\"properties\":{\"x\":{\"description\":\"x\",\"type\":\"string\",\"pattern\":\"(?=a)\"}}}," \
    "\"output_schema\":{\"type\":\"object\"}}"
#define TOOLS_JSON \
    "{\"tools\":[" TOOL("fine", "read") "," TOOL("fine", "read") "," TOOL("no good", "magic") ",{\"name\":\"bare\"}," \
    MISSPELT "," LOOKS_AHEAD "]}"
#include "hostile.h"
