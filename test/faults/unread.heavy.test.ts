import type { Socket } from 'node:net'
import { join } from 'node:path'
import { answering, delta, sseHead } from './answers.ts'
import { faultsOnce, type Row } from './rows.ts'
import { quote } from './terminal.ts'

const unread = join(import.meta.dirname, 'unread.py')

/** More than any terminal takes, and then silence. */
const much = (socket: Socket) =>
  void socket.write(sseHead + Array.from({ length: 2000 }, () => delta('x'.repeat(500))).join(''))

const row = (
  id: string,
  how: 'full' | 'stopped',
  signal: string,
  more: Partial<Row> & { words: string },
): Row => ({
  name: `${id} ${signal} on a ${how} terminal: ${more.words}`,
  shell: `python3 ${quote(unread)} ${how} ${signal} parley ${more.words}`,
  code: 0,
  out: `ran, ${signal} in time\n`,
  ...more,
})

faultsOnce('G: a terminal that nobody reads', [
  ...['SIGTERM', 'SIGINT', 'SIGHUP'].flatMap((signal) => [
    row('G10', 'full', signal, { words: 'chat hi --stream', script: much, reqs: 1 }),
    row('G10', 'stopped', signal, { words: 'chat hi --stream', script: much, reqs: 1 }),
  ]),
  row('G11', 'stopped', 'SIGTERM', { words: 'chat hi --stream', script: answering(sseHead), reqs: 1 }),
  row('G11', 'stopped', 'SIGTERM', { words: 'chat hi', script: () => {}, reqs: 1 }),
  row('G12', 'stopped', 'SIGTERM', { words: 'chat --help' }),
  row('G12', 'stopped', 'SIGTERM', { words: 'chat --no-such-flag' }),
  row('G12', 'stopped', 'SIGTERM', { words: 'config init' }),
  row('G12', 'stopped', 'SIGTERM', { words: 'config set accessToken' }),
])

/** Begins with a pipe, on descriptor 3, that is full and that nobody reads. */
const fullPipe = `mkfifo pipe && exec 3<>pipe && rm pipe && python3 -c '
import os
os.set_blocking(3, False)
try:
    while True: os.write(3, bytes(4096))
except BlockingIOError: os.set_blocking(3, True)'`

/** Takes away what was kept of the answer, and keeps the exit code. */
const takeKept = 'code=$?; rm -f "$TMPDIR"/parley-*.txt; exit $code'

/** On a machine that is slow the deadline passes before anything is written. */
const late = [8, 9, 10, 11]

faultsOnce('O: a pipe that nobody reads', [
  {
    name: 'O11: a full pipe is left at the deadline',
    shell: `${fullPipe}; parley chat hi --profile demo --deadline 3 >&3; ${takeKept}`,
    code: late,
    err: ['the deadline passed'],
  },
  {
    name: 'O14: a full pipe for stdout and stderr is left at the deadline',
    shell: `${fullPipe}; parley chat hi --profile demo --deadline 3 -v >&3 2>&3; ${takeKept}`,
    code: late,
  },
])
