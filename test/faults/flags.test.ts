import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { chatArgv, chatSuccess, row, testFaults, usageError } from './rows.ts'

/** Returns shell commands that write a profile file with one profile, `default`. */
const profile = (values: string) =>
  `mkdir -m 700 conf; (umask 077; echo '{"profiles":{"default":${values}}}' > conf/config.json);
    export PARLEY_CONFIG_DIR=$PWD/conf;`

testFaults('P: parley reads durations and yes-or-no settings', [
  ...['--deadline 1500ms', '--timeout 1.5 --retries 0'].map((flags) =>
    row(
      `P50: parley waits 1.5 s for a response with ${flags}`,
      { argv: [...chatArgv, ...flags.split(' ')], script: () => {} },
      { code: 10, minSeconds: 1.45 },
    ),
  ),
  row(
    'P51: parley accepts "Yes" as the value of a boolean environment variable',
    { ...chatSuccess, argv: [...chatArgv, '--dry-run'], env: { PARLEY_STREAM: 'Yes' }, script: () => {} },
    { reqs: 0, out: (out) => out.includes('?alt=sse') },
  ),
  row('P51: parley exits with 3 if a boolean setting of a profile is "maybe"', {
    shell: `${profile('{"stream":"maybe"}')} parley chat hi`,
    code: 3,
    err: ["'stream' in profile 'default' must be true or false (or yes, no, on, off, 1, 0)"],
    files: ['cwd/conf/config.json'],
  }),
])

const dry = ['chat', '--dry-run']
const shows = (body: string) => (out: Buffer) => {
  expect(out.toString()).toContain(`"body": ${body}\n`)
  return true
}
const hi = '{"contents":[{"role":"user","parts":[{"text":"hi"}]}]'

testFaults('P: parley reads the values of --system, --temperature and -f -', [
  row('P52: parley sends --system as the system instruction', {
    argv: [...dry, 'hi', '--system', 'Be brief.', '--no-stdin'],
    code: 0,
    out: shows(`${hi},"systemInstruction":{"parts":[{"text":"Be brief."}]}}`),
  }),
  row('P52: parley --system @FILE reads the file, and --system @@FILE sends the text @FILE', {
    shell: `printf '@@a "b"' > s; parley chat hi --dry-run --no-stdin --system @s;
      parley chat hi --dry-run --no-stdin --system @@s`,
    code: 0,
    out: (out) => /\{"text":"@@a \\"b\\""\}[\s\S]*\{"text":"@s"\}/.test(out.toString()),
    files: ['cwd/s'],
  }),
  row('P54: parley chat -f - detects an image on stdin by its bytes', {
    argv: [...dry, 'hi', '-f', '-'],
    stdin: Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
    code: 0,
    out: (out) =>
      out.includes('{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUg=="}'),
  }),
])

const makeFifo = (folder: string) => execFileSync('mkfifo', [join(folder, 'cwd/pipe')])

testFaults('P: parley reads @FILE and FIFOs', [
  ...['chat hi -f pipe', 'chat hi --cacert pipe', 'policy check pipe'].map((words) =>
    row(`P56: parley exits with 9 at the deadline if nothing writes to a FIFO: ${words} (needs FIFOs)`, {
      argv: [...words.split(' '), '--deadline', '1', '--no-stdin'],
      prepare: makeFifo,
      code: 9,
      err: [/^parley: the deadline passed while @?pipe was read\n {2}nothing was sent\n$/],
      minSeconds: 0.9,
    }),
  ),
  row('P56: parley exits with 9 at the deadline if a process substitution stays open (needs FIFOs)', {
    shell: `bash -c 'parley chat hi -f <(exec 2> /dev/null; sleep 8 & echo $!) --deadline 1 --no-stdin'`,
    code: 9,
    err: ['the deadline passed while /dev/fd/63 was read'],
  }),
  row('P56: parley prints a hint and reads a FIFO whose writer is late (needs FIFOs)', {
    ...chatSuccess,
    argv: ['chat', 'hi', '-f', 'pipe', '--deadline', '1m', '--no-stdin'],
    prepare: makeFifo,
    during: async ({ cwd, err, waitUntil }) => {
      await waitUntil(() => err() !== '')
      await writeFile(join(cwd, 'pipe'), 'from the pipe\n')
    },
    err: ['parley: waiting for pipe\n'],
    check: ({ server }) => expect(server.requests[0]).toContain('{"text":"from the pipe\\n"}'),
  }),
])

testFaults('P: parley prints hints for wrong arguments', [
  ...[
    ['-H=Cookie: secretword', '-H takes no =: its value is a separate argument'],
    ['--quiet=true', '--quiet takes no value'],
  ].map(([flag = '', message = '']) =>
    row(`P57: parley chat ${flag} exits with 2 because the flag takes no =`, {
      code: 2,
      argv: [...chatArgv, flag],
      err: [`parley: ${message}\n`, /^(?!.*secretword)/s],
    }),
  ),
  ...[['chat'], ['image', '-m', 'm'], ['events', 'send']].map((argv) =>
    row(`P59: parley ${argv[0]} exits with 2 and suggests -- for an argument such as "-what is it?"`, {
      ...usageError,
      argv: [...argv, '-what is it?'],
      err: ['words that begin with a hyphen go after --\n'],
    }),
  ),
  row('P60: parley exits with 2 for -v without a command', {
    ...usageError,
    argv: ['-v'],
    err: ["parley: no command was given: 'parley --help' lists the commands; -V prints the version\n"],
  }),
])
