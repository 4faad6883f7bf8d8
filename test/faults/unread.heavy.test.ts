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
