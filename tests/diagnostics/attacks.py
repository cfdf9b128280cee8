"""Attacks on the sandbox, each a program that prints `MARK` where it succeeds.

Placeholders: SECRET_FILE and HOME (an existing file and its directory), CLIENT (the
process that runs the suite), TCP and UDP (ports that listen on loopback), ABSTRACT and
UNIX (unix sockets that listen), LOOT (a directory that everybody may write to).
"""

MARK = "it leaked"
# Put together at run time: a traceback that quotes the program does not contain it.
PRELUDE = """
LEAK = " ".join(["it", "leaked"])
import ctypes, os, platform, signal, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
def syscall(x86, arm, *arguments):
    number = x86 if X86 else arm
    return libc.syscall(ctypes.c_long(number), *map(ctypes.c_void_p, arguments))
def raw(x86, arm, *arguments):
    if syscall(x86, arm, *arguments) != -1:
        print(LEAK)
"""

# Each of these works where nothing confines it: the suite shows that too.
EFFECTIVE = {
    "read_passwd": "print(LEAK, open('/etc/passwd').read())",
    "read_key": "print(LEAK, open('SECRET_FILE').read())",
    "list_home": "print(LEAK, os.listdir('HOME'))",
    "parent_environ": (
        "print(LEAK, open(f'/proc/{os.getppid()}/environ', 'rb').read())"
    ),
    "client_environ": "print(LEAK, open('/proc/CLIENT/environ', 'rb').read())",
    "tcp": """
s = socket.create_connection(('127.0.0.1', TCP), timeout=1)
s.sendall(b'leak')
print(LEAK)
""",
    "urllib": """
import urllib.request
urllib.request.urlopen('http://127.0.0.1:TCP/secret', timeout=0.3)
""",
    "udp": """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b'leak', ('127.0.0.1', UDP))
print(LEAK)
""",
    "abstract_unix": """
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b'leak', b'\\0ABSTRACT')
print(LEAK)
""",
    "file_unix": """
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b'leak', 'UNIX')
print(LEAK)
""",
    "fork_bomb": """
for _ in range(20):
    if os.fork() == 0:
        os._exit(0)
print(LEAK)
""",
    "daemon": """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.mkdir('LOOT/daemon')
    os._exit(0)
print(LEAK)
""",
    "subprocess": """
import subprocess
print(LEAK, subprocess.run(['/bin/echo', 'hello'], capture_output=True).stdout)
""",
    "system": "assert os.system('mkdir LOOT/system') == 0; print(LEAK)",
    "pickle": """
import pickle
class Bomb:
    def __reduce__(self):
        return os.system, ('mkdir LOOT/pickle',)
assert pickle.loads(pickle.dumps(Bomb())) == 0
print(LEAK)
""",
    "exec": """
os.execv('/bin/echo', ['echo', LEAK])
""",
    "posix_spawn": """
os.posix_spawn('/bin/mkdir', ['mkdir', 'LOOT/spawn'], {})
print(LEAK)
""",
    "multiprocessing": """
import multiprocessing
p = multiprocessing.get_context('fork').Process(target=lambda: None)
p.start()
print(LEAK)
""",
    "write_home": "open('HOME/written', 'w'); print(LEAK)",
    "write_tmp": "open('LOOT/written', 'w'); print(LEAK)",
    "append": "open('SECRET_FILE', 'a'); print(LEAK)",
    "mkdir": "os.mkdir('LOOT/directory'); print(LEAK)",
    "symlink": """
os.symlink('/etc/passwd', 'LOOT/link')
print(LEAK, open('LOOT/link').read())
""",
    "many_files": """
for i in range(50):
    open(f'LOOT/many{i}', 'w').close()
print(LEAK)
""",
    "signal_parent": "os.kill(os.getppid(), 0); print(LEAK)",
    "signal_client": "os.kill(CLIENT, 0); print(LEAK)",
    "signal_all": "os.kill(-1, 0); print(LEAK)",
    "signal_group": "os.kill(0, 0); print(LEAK)",
    "sys": "print(LEAK, os.listdir('/sys/kernel'))",
    "chmod_setuid": "os.chmod('SECRET_FILE', 0o4755); print(LEAK)",
    "utime": "os.utime('SECRET_FILE', (0, 0)); print(LEAK)",
    "rename": "os.rename('SECRET_FILE', 'HOME/moved'); print(LEAK)",
    "unlink": "os.unlink('SECRET_FILE'); print(LEAK)",
    "memfd": "os.memfd_create('x'); print(LEAK)",
    "pidfd_open": "os.pidfd_open(os.getppid()); print(LEAK)",
    "raw_socket_call": "raw(41, 198, 2, 1, 0)",
    "raw_fork": """
pid = syscall(57, 220, 17, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
if pid > 0:
    print(LEAK)
""",
    "process_limits": """
import resource
print(LEAK, resource.prlimit(CLIENT, resource.RLIMIT_NOFILE))
""",
    "shared_memory": "raw(29, 194, 0, 4096, 0o600)",
    "message_queue": "raw(68, 186, 0, 0o600)",
    "fcntl_owner": """
import fcntl
fcntl.fcntl(1, 8, CLIENT)  # F_SETOWN: signals on input would go to another process
print(LEAK)
""",
    "readlink": "print(LEAK, os.readlink('/proc/self/exe'))",
    "priority": "os.setpriority(os.PRIO_PROCESS, 0, 5); print(LEAK)",
}

# These fail for other reasons on some machines; in the sandbox they fail on all.
OTHERS = {
    "own_environ_file": "print(LEAK, open('/proc/self/environ', 'rb').read())",
    "environ": "print([v for v in os.environ.values() if 'canary' in v])",
    "kmsg": "print(LEAK, os.read(os.open('/dev/kmsg', os.O_RDONLY), 100))",
    "one_big_file": "open('LOOT/big', 'wb').write(bytes(300_000_000)); print(LEAK)",
    # PTRACE_SEIZE: unlike PTRACE_ATTACH it does not stop the server where it works.
    "ptrace_parent": "raw(101, 117, 0x4206, os.getppid(), 0, 0)",
    "parent_memory": "print(LEAK, open(f'/proc/{os.getppid()}/mem', 'r+b'))",
    "parent_descriptors": "print(LEAK, os.listdir(f'/proc/{os.getppid()}/fd'))",
    "process_vm_readv": """
word = ctypes.create_string_buffer(8)
address = ctypes.addressof(word)  # forked: the same address is mapped in the parent
vector = (ctypes.c_size_t * 2)(address, 8)
raw(310, 270, os.getppid(), ctypes.addressof(vector), 1, ctypes.addressof(vector), 1, 0)
""",
    "io_uring": """
raw(425, 425, 1, ctypes.addressof(ctypes.create_string_buffer(200)))
""",
    "setxattr": "os.setxattr('SECRET_FILE', 'user.x', b'1'); print(LEAK)",
    "openat2": """
how = (ctypes.c_uint64 * 3)(0o102, 0o600, 0)
raw(437, 437, -100, ctypes.addressof(ctypes.create_string_buffer(b'LOOT/openat2')),
    ctypes.addressof(how), 24)
""",
    "clone3": """
arguments = (ctypes.c_uint64 * 11)()
arguments[4] = 17
pid = syscall(435, 435, ctypes.addressof(arguments), 88)
if pid == 0:
    os._exit(0)
if pid > 0:
    print(LEAK)
""",
    "vfork_like_clone": """
pid = syscall(56, 220, 0x4011, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
if pid > 0:
    print(LEAK)
""",
    "truncate": "os.truncate('SECRET_FILE', 0); print(LEAK)",
    "open_truncating": """
os.open('SECRET_FILE', os.O_RDONLY | os.O_TRUNC)
print(LEAK)
""",
    "unshare": "raw(272, 97, 0x10000000)",
    "mount": "raw(165, 40, 0, 0, 0, 0, 0)",
    "chroot": "os.chroot('/tmp'); print(LEAK)",
    "setuid": "os.setuid(0); print(LEAK)",
    "setsid": "os.setsid(); print(LEAK)",
    "bpf": "raw(321, 280, 0, 0, 0)",
    "keyring": "raw(250, 219, 0, -3, 1)",
    "perf": "raw(298, 241, 0, 0, -1, -1, 0)",
    "sigqueue": "raw(129, 138, CLIENT, 0, 0)",
    "tkill": "raw(200, 130, CLIENT, 0)",
    "raise_limits": """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))
print(LEAK)
""",
    "second_filter": "raw(317, 277, 1, 0, 0)",
    "undo_dumpable": """
if libc.prctl(4, 1, 0, 0, 0) == 0:
    print(LEAK)
""",
    "thread_then_fork": """
def attack():
    try:
        os.fork() or os._exit(0)
        print(LEAK)
    except OSError:
        pass
t = threading.Thread(target=attack)
t.start()
t.join()
""",
    "thread_reads": """
def attack():
    try:
        print(LEAK, open('SECRET_FILE').read())
    except OSError:
        pass
t = threading.Thread(target=attack)
t.start()
t.join()
""",
    "foreign_descriptors": """
for descriptor in [0, *range(3, 64)]:
    try:
        os.write(descriptor, b'{"finding": "forged"}')
        print(LEAK, descriptor)
    except OSError:
        pass
""",
}
