"""The self-test: what analysis code must not be able to do, tried at every start.

The text runs as a job of its own, confined like any other. Each probe prints its name
and `denied` or `OPEN`; a line that is missing counts as open.
"""

# Expected for each probe. `urandom` and `import` must work: they show that the others
# fail because of the sandbox.
EXPECTED = {
    "urandom": "OPEN",
    "import": "OPEN",
    "read": "denied",
    "list": "denied",
    "environ": "denied",
    "write": "denied",
    "chmod": "denied",
    "unlink": "denied",
    "socket": "denied",
    "unix_socket": "denied",
    "fork": "denied",
    "exec": "denied",
    "signal": "denied",
    "ptrace": "denied",
    "memory": "denied",
}

CODE = """
import ctypes, errno, os, socket

CANARY = {canary!r}
libc = ctypes.CDLL(None, use_errno=True)

def probe(name, function):
    try:
        function()
    except (OSError, MemoryError):
        print(name, "denied", flush=True)
    else:
        print(name, "OPEN", flush=True)

def fork():
    if os.fork() == 0:
        os._exit(0)

def ptrace():
    # PTRACE_CONT for a process that is not traced: harmless where it is allowed.
    libc.ptrace(7, os.getppid(), 0, 0)
    if ctypes.get_errno() == errno.EPERM:
        raise OSError(errno.EPERM, "ptrace")

probe("urandom", lambda: open("/dev/urandom", "rb").read(1))
probe("import", lambda: __import__("colorsys"))
probe("read", lambda: open(CANARY).read())
probe("list", lambda: os.listdir(os.path.dirname(CANARY)))
probe("environ", lambda: open("/proc/self/environ", "rb").read())
probe("write", lambda: open(CANARY + ".new", "w").close())
probe("chmod", lambda: os.chmod(CANARY, 0o600))
probe("unlink", lambda: os.unlink(CANARY))
probe("socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
probe("unix_socket", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
probe("fork", fork)
probe("signal", lambda: os.kill(os.getppid(), 0))
probe("ptrace", ptrace)
probe("memory", lambda: bytearray({too_much}))
probe("exec", lambda: os.execv("/bin/true", ["true"]))
"""

MEMORY_MB = 256


def code(canary: str) -> str:
    """The probes' program; `canary` is a file that the server's own user can read."""
    return CODE.format(canary=canary, too_much=2 * MEMORY_MB * 2**20)


def verdicts(text: str) -> dict[str, str]:
    """What each probe found: `"denied"`, `"OPEN"`, or `"missing"`."""
    lines = [line.split() for line in text.splitlines()]
    found = {words[0]: words[1] for words in lines if len(words) == 2}
    # A program that replaced itself by `true` prints nothing any more.
    return {name: found.get(name, "missing") for name in EXPECTED}
