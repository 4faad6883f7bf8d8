import type { Socket } from 'node:net'
import { join } from 'node:path'
import { respondWith, sseHead, textDelta } from './answers.ts'
import { type FaultRow, testFaultsOnce } from './rows.ts'
import { quoteForShell } from './terminal.ts'

const unread = join(import.meta.dirname, 'unread.py')

/** Sends more text than a terminal buffers. The stream does not end. */
const sendMuch = (socket: Socket) =>
  void socket.write(sseHead + Array.from({ length: 2000 }, () => textDelta('x'.repeat(500))).join(''))

/** Reasons why the terminal accepts no output: its buffer is full, or its output was stopped (Ctrl-S). */
const states = { full: 'with a full buffer', stopped: 'whose output is stopped' }

const row = (
  id: string,
  state: keyof typeof states,
  signal: string,
  words: string,
  more: Partial<FaultRow> = {},
): FaultRow => ({
  name: `${id}: parley ${words} ends by ${signal} on a terminal ${states[state]}`,
  shell: `python3 ${quoteForShell(unread)} ${state} ${signal} parley ${words}`,
  code: 0,
  out: `ran, ${signal}\n`,
  ...more,
})

testFaultsOnce('G: parley ends by a signal on a terminal that accepts no output', [
  ...['SIGTERM', 'SIGINT', 'SIGHUP'].flatMap((signal) => [
    row('G10', 'full', signal, 'chat hi --stream', { script: sendMuch }),
    row('G10', 'stopped', signal, 'chat hi --stream', { script: sendMuch }),
  ]),
  row('G11', 'stopped', 'SIGTERM', 'chat hi --stream', { script: respondWith(sseHead) }),
  row('G11', 'stopped', 'SIGTERM', 'chat hi', { script: () => {} }),
  ...['chat --help', 'chat --no-such-flag', 'config init', 'config set accessToken'].map((words) =>
    row('G12', 'stopped', 'SIGTERM', words),
  ),
])

/** Shell commands that open a full pipe without a reader on descriptor 3. */
const fullPipe = `mkfifo pipe && exec 3<>pipe && rm pipe && python3 -c '
import os
os.set_blocking(3, False)
try:
    while True: os.write(3, bytes(4096))
except BlockingIOError: os.set_blocking(3, True)'`

/** Shell commands that remove the saved answer and keep the exit code. */
const removeSavedAnswer = 'code=$?; rm -f "$TMPDIR"/parley-*.txt; exit $code'

/**
 * Exit codes after a passed deadline. On a slow machine, the deadline may pass before parley prints, with
 * another code.
 */
const deadlineCodes = [8, 9, 10, 11]

testFaultsOnce('O: parley exits at the deadline if nobody reads its output', [
  {
    name: 'O11: parley exits at the deadline if stdout is a full pipe without a reader',
    shell: `${fullPipe}; parley chat hi --profile demo --deadline 3 >&3; ${removeSavedAnswer}`,
    code: deadlineCodes,
    err: ['the deadline passed'],
  },
  {
    name: 'O14: parley exits at the deadline if stdout and stderr are a full pipe without a reader',
    shell: `${fullPipe}; parley chat hi --profile demo --deadline 3 -v >&3 2>&3; ${removeSavedAnswer}`,
    code: deadlineCodes,
  },
])
