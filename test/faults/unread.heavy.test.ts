import type { Socket } from 'node:net'
import { join } from 'node:path'
import { answering, delta, sseHead } from './answers.ts'
import { faultsOnce, type Row } from './rows.ts'
import { quote } from './terminal.ts'

const unread = join(import.meta.dirname, 'unread.py')

/** Sends more text than any terminal buffers, without end. */
const much = (socket: Socket) =>
  void socket.write(sseHead + Array.from({ length: 2000 }, () => delta('x'.repeat(500))).join(''))

const row = (
  id: string,
  how: 'full' | 'stopped',
  signal: string,
  more: Partial<Row> & { words: string },
): Row => ({
  name: `${id}: parley ends by ${signal} on a ${how} terminal that nobody reads: ${more.words}`,
  shell: `python3 ${quote(unread)} ${how} ${signal} parley ${more.words}`,
  code: 0,
  out: `ran, ${signal}\n`,
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

/** Shell commands that open a full pipe without a reader on descriptor 3. */
const fullPipe = `mkfifo pipe && exec 3<>pipe && rm pipe && python3 -c '
import os
os.set_blocking(3, False)
try:
    while True: os.write(3, bytes(4096))
except BlockingIOError: os.set_blocking(3, True)'`

/** Shell commands that remove the saved answer and preserve the exit code. */
const removeSavedAnswer = 'code=$?; rm -f "$TMPDIR"/parley-*.txt; exit $code'

/** On a slow machine the deadline may pass before the first write. */
const lateCodes = [8, 9, 10, 11]

faultsOnce('O: a pipe that nobody reads', [
  {
    name: 'O11: parley exits at the deadline if stdout is a full pipe',
    shell: `${fullPipe}; parley chat hi --profile demo --deadline 3 >&3; ${removeSavedAnswer}`,
    code: lateCodes,
    err: ['the deadline passed'],
  },
  {
    name: 'O14: parley exits at the deadline if stdout and stderr are a full pipe',
    shell: `${fullPipe}; parley chat hi --profile demo --deadline 3 -v >&3 2>&3; ${removeSavedAnswer}`,
    code: lateCodes,
  },
])
