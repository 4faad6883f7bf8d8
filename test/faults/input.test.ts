import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { copyProgramForNobody } from '../harness/process.ts'
import type { FaultRow } from './rows.ts'
import {
  chatArgv,
  chatSuccess,
  row,
  sendArgv,
  sendSuccess,
  testFaults,
  testNetworkFaults,
  usageError,
} from './rows.ts'
import { quoteForShell } from './terminal.ts'

const send = ['events', 'send']
const expectPrompt = (text: string): Pick<FaultRow, 'check'> => ({
  check: ({ server }) => {
    const { contents } = JSON.parse(server.requests[0]?.split('\r\n\r\n')[1] ?? '')
    expect(contents[0].parts).toEqual([{ text }])
  },
})

testFaults('P: parley reads stdin and files of flags', [
  ...[['chat'], send].flatMap((argv) => [
    row(`P01: parley ${argv.join(' ')} exits with 2 on empty stdin`, { ...usageError, argv, err: ['empty'] }),
    row(`P02: parley ${argv.join(' ')} exits with 2 if stdin is closed`, {
      ...usageError,
      shell: `parley ${argv.join(' ')} <&-`,
      err: ['empty'],
    }),
    row(
      `P08: parley ${argv.join(' ')} exits with 2 and names the line of stdin that is not UTF-8`,
      { argv, stdin: Buffer.from('ab\xff', 'latin1') },
      { ...usageError, err: ['on line 1'] },
    ),
    ...['', ' text'].map((words) =>
      row(`P11: parley ${argv.join(' ')}${words} exits with 11 if stdin is a folder`, {
        shell: `parley ${argv.join(' ')}${words} </`,
        code: 11,
        err: ['it is a folder'],
      }),
    ),
  ]),
  row(
    'P04: parley waits for a slow writer to stdin',
    { ...chatSuccess, shell: '(sleep 1; echo one; sleep 1; echo two) | parley chat' },
    { ...expectPrompt('one\ntwo\n'), minSeconds: 2 },
  ),
  row(
    'P05: parley events send --no-stdin does not wait for an idle pipe on stdin',
    { argv: [...sendArgv, '--no-stdin'], stdin: { open: true }, ...sendSuccess },
    { either: 'without stdin, the run does not wait either' },
  ),
  row('P05: parley chat --no-stdin does not wait for an idle pipe on stdin', {
    ...chatSuccess,
    argv: [...chatArgv, '--no-stdin'],
    stdin: { open: true },
  }),
  row('P05: parley chat prints a hint while it waits for an idle pipe on stdin', {
    ...chatSuccess,
    stdin: { open: true },
    during: async ({ child, err, waitUntil }) => {
      await waitUntil(() => err() !== '')
      child.stdin?.end()
    },
    err: ['waiting for stdin (--no-stdin skips it)'],
  }),
  row('P15: parley exits with 11 if it may not read the file of --message @FILE (needs another user)', {
    shell: `chmod 0 secret; ${copyProgramForNobody().map(quoteForShell).join(' ')} events send --message @secret
      code=$?; chmod 600 secret; exit $code`,
    env: { NODE_OPTIONS: '' },
    prepare: (folder) => {
      writeFileSync(join(folder, 'cwd/secret'), 'x')
      execFileSync('chmod', ['-R', 'go+rX', folder])
    },
    code: 11,
    files: ['cwd/secret'],
    err: ['secret: permission denied'],
  }),
])

testFaults('P: parley combines stdin with words and deadlines', [
  ...[['chat'], chatArgv, send, sendArgv].map((argv) =>
    row(`P21: parley ${argv.join(' ')} exits with 9 if the deadline passes while it waits for stdin`, {
      argv: [...argv, '--deadline', '1', '-q'],
      stdin: { open: true },
      code: 9,
      err: [/^parley: the deadline passed while stdin was read\n {2}nothing was sent\n$/],
      minSeconds: 0.9,
    }),
  ),
])

const ids: [id: string, value: string, path?: string][] = [
  ['L01', '..'],
  ['L02', '.'],
  ['L02', '%2e%2e'],
  ['L03', 'a/b', 'a%2Fb'],
  ['L03', 'a%2fb', 'a%252fb'],
  ['L04', 'a?x=1', 'a%3Fx%3D1'],
  ['L05', 'a\rb'],
  ['L05', 'a\u0085b'],
  ['L06', 'é', '%C3%A9'],
  ['L06', '🦜', '%F0%9F%A6%9C'],
  ['L08', 'x'.repeat(10_240)],
  ['L08', '-x', '-x'],
]

/** Values that are also tried as the name of a model, because it is encoded like a session id. */
const models = new Set(['..', 'a\rb', 'a/b', 'a?x=1', 'é', '-x'])

const expectPath = (path: string): Pick<FaultRow, 'check'> => ({
  check: ({ server }) => expect(server.requests[0]?.split(' ')[1]).toContain(path),
})

testNetworkFaults('L: parley checks and encodes ids and addresses', [
  ...ids.flatMap(([id, value, path]): FaultRow[] => {
    const shown = value.length > 100 ? `of ${value.length} characters` : JSON.stringify(value)
    const [rule, end] = path === undefined ? ['exits with 2 for', ''] : ['sends', ' as one path segment']
    const ofSession = path ? { ...sendSuccess, ...expectPath(`/v1/sessions/${path}/events`) } : usageError
    const ofModel = path ? { ...chatSuccess, ...expectPath(`/models/${path}:gen`) } : usageError
    const modelRow = row(`L09: parley ${rule} the model ${shown}${end}`, {
      ...ofModel,
      argv: [...chatArgv, `--model=${value}`],
    })
    return [
      row(`${id}: parley ${rule} the session id ${shown}${end}`, {
        ...ofSession,
        argv: [...sendArgv, `--session=${value}`],
      }),
      ...(models.has(value) ? [modelRow] : []),
    ]
  }),
  row('L02: parley exits with 2 for an empty session id', {
    argv: [...sendArgv, '--session='],
    code: 2,
    env: { PARLEY_SESSION: '' },
  }),
  ...['http://127.0.0.1:1/?a=b', 'http://user:secretword@127.0.0.1:1/', 'gateway.example'].map(
    (address, index) =>
      row(`L11, L12: parley exits with 3 for the base URL ${JSON.stringify(address)}`, {
        argv: index % 2 === 0 ? chatArgv : sendArgv,
        url: () => address,
        code: 3,
        err: [/^parley: PARLEY_(BASE|AGENTS)_URL (must|is)/, /^(?!.*secretword)/s],
      }),
  ),
  row('L13: parley accepts a base URL with an upper-case host and a trailing slash', {
    ...chatSuccess,
    url: ({ port }) => `http://LOCALHOST:${port}/a/b/`,
    ...expectPath('/a/b/alpha_cli/'),
  }),
])

testNetworkFaults('H: parley checks and sends the headers of -H', [
  row(
    'H05: parley omits headers given as "-H NAME:", and runs no accessTokenCommand if it omits authorization',
    {
      ...chatSuccess,
      argv: [...chatArgv, '-H', 'authorization:', '-H', 'Content-Type:', '-H', 'x-a:'],
      env: { PARLEY_ACCESS_TOKEN: '', PARLEY_ACCESS_TOKEN_COMMAND: 'touch ran; echo x' },
      check: ({ server }) => expect(server.requests[0]).not.toMatch(/^(authorization|content-type|x-a):/im),
    },
  ),
])
