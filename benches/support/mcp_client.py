"""The published client of an MCP server. For each line of standard input, a number of calls and of milliseconds, it calls the
tool `add` so often, or until that time is over, and writes the median in microseconds.

    mcp_client.py stdio COMMAND ARGUMENT...
    mcp_client.py http URL
"""
import asyncio
import statistics
import sys
import time

from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

TRANSPORT, *WHERE = sys.argv[1:]


async def main():
    if TRANSPORT == "stdio":
        streams = stdio_client(StdioServerParameters(command=WHERE[0], args=WHERE[1:]))
    else:
        streams = streamable_http_client(WHERE[0])
    async with streams as (read, write, *_), ClientSession(read, write) as session:
        await session.discover()
        while line := await asyncio.to_thread(sys.stdin.readline):
            calls, milliseconds = map(int, line.split())
            end = time.perf_counter() + milliseconds / 1000
            times = []
            while len(times) < calls and time.perf_counter() < end:
                asked = time.perf_counter()
                answer = await session.call_tool("add", {"a": 20, "b": 22})
                times.append(time.perf_counter() - asked)
                assert answer.structured_content == {"result": 42}, answer
            print(statistics.median(times) * 1e6, flush=True)


asyncio.run(main())
