# Runs a command on a terminal that nobody reads, and sends it a signal once it is idle. Prints whether the
# command was still running, and its signal or exit code.
import os, pty, signal, sys, termios, time

how, name, command = sys.argv[1], sys.argv[2], sys.argv[3:]
keeper, terminal = pty.openpty()
if how == 'stopped':
    termios.tcflow(terminal, termios.TCOOFF)
child = os.fork()
if child == 0:
    os.setsid()
    for descriptor in (0, 1, 2):
        os.dup2(terminal, descriptor)
    os.execvp(command[0], command)


def is_running():
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def read_fields(path):
    with open(path) as file:
        return file.read().rsplit(')', 1)[1].split()


# A thread that waits for a processor or a disk is not asleep, so it does not count as idle.
def is_asleep():
    threads = os.listdir(f'/proc/{child}/task')
    return all(read_fields(f'/proc/{child}/task/{thread}/stat')[0] == 'S' for thread in threads)


def processor_time():
    return read_fields(f'/proc/{child}/stat')[11:13]


# Idle means that all threads sleep and use no processor time for half a second.
last, since = None, time.monotonic()
while is_running() and time.monotonic() - since < 0.5:
    try:
        now = processor_time() if is_asleep() else None
    except FileNotFoundError:
        # A thread has ended meanwhile.
        now = None
    if now is None or now != last:
        last, since = now, time.monotonic()
    time.sleep(0.05)
was_running = is_running()
os.kill(child, getattr(signal, name))
# A blocked write to the terminal would never end, so a limit of seconds detects it even on a slow machine.
limit = time.monotonic() + 5
while is_running() and time.monotonic() < limit:
    time.sleep(0.01)
if is_running():
    os.kill(child, signal.SIGKILL)
status = os.waitpid(child, 0)[1]
ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)
print(f'{"ran" if was_running else "was over"}, {signal.Signals(ended).name if ended > 0 else -ended}')
