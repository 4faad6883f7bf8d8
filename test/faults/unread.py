# Runs a command on a terminal that nobody reads, sends it a signal once it is idle, and prints how it ended.
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


def state():
    with open(f'/proc/{child}/stat') as file:
        fields = file.read().rsplit(')', 1)[1].split()
    return fields[11:13]


# Idle means no processor time for half a second.
last, since = None, time.monotonic()
while is_running() and time.monotonic() - since < 0.5:
    now = state()
    if now != last:
        last, since = now, time.monotonic()
    time.sleep(0.05)
was_running = is_running()
start = time.monotonic()
os.kill(child, getattr(signal, name))
while is_running() and time.monotonic() - start < 5:
    time.sleep(0.01)
took = time.monotonic() - start
if is_running():
    os.kill(child, signal.SIGKILL)
status = os.waitpid(child, 0)[1]
ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status)
in_time = 'in time' if took < 0.5 else f'after {took:.1f} s'
print(f'{"ran" if was_running else "was over"}, {signal.Signals(ended).name if ended > 0 else -ended} {in_time}')
