"""Gives the API server the address and port that pods know it by, as kube-proxy would: forward.py FROM_HOST TO_PORT."""

import asyncio
import sys


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def main(host, port):
    async def taken(reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return writer.close()
        await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))

    server = await asyncio.start_server(taken, host, 443)
    await server.serve_forever()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
