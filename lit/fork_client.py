"""Asks lit/fork_server.py for a command: `fork_client.py SOCKET mgx-opt ARGUMENTS`.

It is started often, as `python -I -S`, and so imports little.
"""

import json
import os
import signal
import socket
import sys


def main() -> int:
    """Hand over the command with this process's streams; end as it ended."""
    request = {
        "command": sys.argv[2:],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.connect(sys.argv[1])
        data = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(server, [data], [0, 1, 2])
        if sent < len(data):  # a send of nothing fails where the answer is here already
            server.sendall(data[sent:])
        status = server.recv(16)
    if not status:
        print("fork_client: the server of lit's commands ended", file=sys.stderr)
        return 70
    code = int(status)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
