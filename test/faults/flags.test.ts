import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { answering, ok, okText } from './answers.ts'
import { chat, faults, type Row } from './rows.ts'

const good = { script: answering(ok), code: 0, out: okText, reqs: 1 } satisfies Partial<Row>
const refused = { code: 2, err: ['parley: '] } satisfies Partial<Row>

/** Returns shell commands that write a profile file with one profile, `default`. */
const profile = (values: string) =>
  `mkdir -m 700 conf; (umask 077; echo '{"profiles":{"default":${values}}}' > conf/config.json);
    export PARLEY_CONFIG_DIR=$PWD/conf;`

faults('P: durations and yes-or-no settings', [
  ...['--deadline 1500ms', '--timeout 1.5 --retries 0'].map(
    (flags): Row => ({
      name: `P50: parley accepts the duration in ${flags}`,
      argv: [...chat, ...flags.split(' ')],
      script: () => {},
      code: 10,
      reqs: 1,
      atLeast: 1.45,
    }),
  ),
  ...['10 years', '1h30m', ''].map(
    (value): Row => ({
      ...refused,
      name: `P50: parley rejects ${JSON.stringify(value)} as a duration`,
      argv: [...chat, `--timeout=${value}`],
      err: [
        `parley: --timeout${value && ` ${value}:`} must be a duration such as 500ms, 10s, 2m or 1h; a bare number is seconds\n`,
      ],
    }),
  ),
  {
    ...good,
    name: 'P51: parley reads "Yes" in the environment as yes',
    argv: [...chat, '--dry-run'],
    env: { PARLEY_STREAM: 'Yes' },
    script: () => {},
    reqs: 0,
    out: (out) => out.includes('?alt=sse'),
  },
  {
    name: 'P51: parley exits with 3 if a yes-or-no setting is "maybe"',
    shell: `${profile('{"stream":"maybe"}')} parley chat hi`,
    code: 3,
    err: ["'stream' in profile 'default' must be true or false (or yes, no, on, off, 1, 0)"],
    files: ['cwd/conf/config.json'],
  },
])

const dry = ['chat', '--dry-run']
const shows = (body: string) => (out: Buffer) => {
  expect(out.toString()).toContain(`"body": ${body}\n`)
  return true
}
const hi = '{"contents":[{"role":"user","parts":[{"text":"hi"}]}]'

faults('P: chat --system, --temperature and -f -', [
  {
    name: 'P52: parley sends --system as the system instruction',
    argv: [...dry, 'hi', '--system', 'Be brief.', '--no-stdin'],
    code: 0,
    out: shows(`${hi},"systemInstruction":{"parts":[{"text":"Be brief."}]}}`),
  },
  {
    name: 'P52: parley reads the file of --system @FILE, and @@ as a literal @',
    shell: `printf '@@a "b"' > s; parley chat hi --dry-run --no-stdin --system @s;
      parley chat hi --dry-run --no-stdin --system @@s`,
    code: 0,
    out: (out) => /\{"text":"@@a \\"b\\""\}[\s\S]*\{"text":"@s"\}/.test(out.toString()),
    files: ['cwd/s'],
  },
  {
    name: 'P52: parley replaces the system instruction of a body with --system',
    argv: [...dry, '-i', '-', '--system', 'new', '--temperature', '0.50', '--set', 'b=1.00'],
    stdin: '{"systemInstruction":{"parts":[]},"contents":[],"a":1.00}',
    code: 0,
    out: shows(
      '{"systemInstruction":{"parts":[{"text":"new"}]},"contents":[],"a":1.00,"generationConfig":{"temperature":0.50},"b":1.00}',
    ),
  },
  ...(['chat', 'image'] as const).map(
    (command): Row => ({
      name: `P54: parley detects an image on -f - by its bytes (${command})`,
      argv: [command, 'hi', '-f', '-', '--dry-run', '-m', 'm'],
      stdin: Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
      code: 0,
      out: shows(
        '{"contents":[{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUg=="}}]}]}',
      ),
    }),
  ),
  {
    ...refused,
    name: 'P54: parley rejects two readers of stdin',
    argv: [...chat, '-f', '-', '-f', '-'],
    stdin: 'x',
    err: ['stdin can be read only once'],
  },
  {
    ...refused,
    name: 'P54: parley rejects -f - if stdin is neither text nor an image',
    argv: [...chat, '-f', '-'],
    stdin: Buffer.from('a\xff\0', 'latin1'),
    err: ['stdin: neither UTF-8 text nor an image'],
  },
])

const makeFifo = (folder: string) => execFileSync('mkfifo', [join(folder, 'cwd/pipe')])

faults('P: @FILE and FIFOs', [
  {
    ...refused,
    name: 'P55: parley rejects an @FILE that is not UTF-8 text',
    shell: "printf 'a\\377' > b; parley events send --message @b",
    err: ['parley: @b: not UTF-8 text on line 1'],
    files: ['cwd/b'],
  },
  ...[
    ['chat', 'hi', '--system', '@@missing.txt'],
    ['events', 'send', '--message', '@@missing.txt'],
  ].map(
    (argv): Row => ({
      name: `P55: parley reads @@ as a literal @ (${argv[0]})`,
      argv: [...argv, '--dry-run', '--no-stdin'],
      code: 0,
      out: (out) => out.includes('"text":"@missing.txt"'),
    }),
  ),
  ...[
    ['chat', 'hi', '-f', 'pipe'],
    ['chat', 'hi', '--cacert', 'pipe'],
    ['policy', 'check', 'pipe'],
  ].map(
    (argv): Row => ({
      name: `P56: parley exits with 9 at the deadline if nothing writes to a FIFO: ${argv.join(' ')} (needs FIFOs)`,
      argv: [...argv, '--deadline', '1', '--no-stdin'],
      prepare: makeFifo,
      code: 9,
      err: [/^parley: the deadline passed while @?pipe was read\n {2}nothing was sent\n$/],
      atLeast: 0.9,
    }),
  ),
  {
    name: 'P56: parley exits with 9 at the deadline if a process substitution stays open (needs FIFOs)',
    shell: `bash -c 'parley chat hi -f <(exec 2> /dev/null; sleep 8 & echo $!) --deadline 1 --no-stdin'`,
    code: 9,
    err: ['the deadline passed while /dev/fd/63 was read'],
  },
  {
    ...good,
    name: 'P56: parley prints a hint and reads a FIFO whose writer is late (needs FIFOs)',
    argv: ['chat', 'hi', '-f', 'pipe', '--deadline', '1m', '--no-stdin'],
    prepare: makeFifo,
    during: async ({ cwd, child, err }) => {
      while (err() === '' && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 10))
      await writeFile(join(cwd, 'pipe'), 'from the pipe\n')
    },
    err: ['parley: waiting for pipe\n'],
    check: ({ server }) => expect(server.requests[0]).toContain('{"text":"from the pipe\\n"}'),
  },
])

faults('P: hints before anything is sent', [
  ...[
    ['chat', '-H=Cookie: secretword', '-H takes no =: its value is a separate argument'],
    ['chat', '--quiet=true', '--quiet takes no value'],
  ].map(
    ([command = '', flag = '', message = '']): Row => ({
      code: 2,
      name: `P57: parley rejects the = in ${command} ${flag}`,
      argv: [...command.split(' '), flag, 'hi'],
      err: [`parley: ${message}\n`, /^(?!.*secretword)/s],
    }),
  ),
  ...[['chat'], ['image', '-m', 'm'], ['events', 'send']].map(
    (argv): Row => ({
      ...refused,
      name: `P59: parley rejects a prompt of ${argv[0]} that begins with a hyphen: '${'-what is it?'}'`,
      argv: [...argv, '-what is it?'],
      err: [
        '-what is it?'.includes(' ')
          ? 'words that begin with a hyphen go after --\n'
          : "--help' lists the flags\n",
      ],
    }),
  ),
  {
    ...refused,
    name: 'P60: parley rejects -v without a command',
    argv: ['-v'],
    err: ["parley: no command was given: 'parley --help' lists the commands; -V prints the version\n"],
  },
])
