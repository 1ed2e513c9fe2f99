/* Of its four tools one can be used. */
#define TOOLS_JSON "{\"tools\":[" TOOL("fine", "read") "," TOOL("fine", "read") "," TOOL("no good", "magic") ",{\"name\":\"bare\"}]}"
#include "hostile.h"
