import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { configFolder } from '../harness/run.ts'
import { answering, ok, okText } from './answers.ts'
import { chat, events, faults, type Row } from './rows.ts'

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
  ...['"1500ms"', '1.5'].map(
    (value): Row => ({
      name: `P50: parley accepts the deadline ${value} in the profile file`,
      prepare: (folder) => {
        const configPath = join(folder, 'home', configFolder)
        mkdirSync(configPath, { recursive: true, mode: 0o700 })
        writeFileSync(`${configPath}/config.json`, `{"profiles":{"default":{"deadline":${value}}}}`, {
          mode: 0o600,
        })
      },
      script: () => {},
      code: 10,
      reqs: 1,
      atLeast: 1.45,
      files: [`home/${configFolder}/config.json`],
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
    name: 'P50: parley exits with 3 if PARLEY_DEADLINE is not a duration',
    env: { PARLEY_DEADLINE: 'soon' },
    code: 3,
    err: ['PARLEY_DEADLINE must be a duration such as'],
  },
  {
    ...good,
    name: 'P51: reads Yes in the environment as yes',
    argv: [...chat, '--dry-run'],
    env: { PARLEY_STREAM: 'Yes' },
    script: () => {},
    reqs: 0,
    out: (out) => out.includes('?alt=sse'),
  },
  ...['"no"', '0'].map(
    (value): Row => ({
      ...good,
      name: `P51: parley reads ${value} in the profile file as no`,
      shell: `${profile(`{"stream":${value}}`)} parley chat hi`,
      files: ['cwd/conf/config.json'],
    }),
  ),
  {
    name: 'P51: exits with 3 if a yes-or-no setting is "maybe"',
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
  {
    name: 'P52: parley saves --system in a thread, but not --temperature',
    shell: `parley chat one --thread t.json --system keep --temperature 1 --no-stdin && cat t.json`,
    script: answering(ok),
    code: 0,
    out: (out) => !out.includes('temperature') && /"one".*"keep"/.test(out.toString()),
    reqs: 1,
    files: ['cwd/t.json'],
    check: ({ server }) =>
      expect(server.requests[0]).toContain('"systemInstruction":{"parts":[{"text":"keep"}]}'),
  },
  {
    ...refused,
    name: 'P52: parley rejects an empty --system',
    argv: [...chat, '--system', ' '],
    err: ['--system: it is empty'],
  },
  {
    name: 'P53: parley sends --temperature',
    argv: [...dry, 'hi', '--temperature', '0', '--no-stdin'],
    code: 0,
    out: shows(`${hi},"generationConfig":{"temperature":0}}`),
  },
  {
    ...refused,
    name: 'P53: parley rejects a --temperature that is not a number',
    argv: [...chat, '--temperature', 'warm'],
    err: ["--temperature: 'warm' is not a number"],
  },
  {
    name: 'P54: parley adds the text of -f - after the prompt, once',
    argv: [...dry, 'hi', '-f', '-'],
    stdin: 'piped\n',
    code: 0,
    out: shows('{"contents":[{"role":"user","parts":[{"text":"hi"},{"text":"piped\\n"}]}]}'),
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
    name: 'P54: rejects two readers of stdin',
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
  {
    ...refused,
    name: 'P54: parley rejects -f - with --no-stdin',
    argv: [...chat, '-f', '-', '--no-stdin'],
    err: ['-f - reads stdin, which --no-stdin forbids'],
  },
])

const makeFifo = (folder: string) => execFileSync('mkfifo', [join(folder, 'cwd/pipe')])

faults('P: @FILE and FIFOs', [
  ...[
    ['chat', 'hi', '--system', '@missing.txt'],
    ['events', 'send', '--message', '@missing.txt'],
  ].map(
    (argv): Row => ({
      name: `P55: the message about a missing file contains its @: ${argv.slice(1).join(' ')}`,
      argv: [...argv, '--no-stdin'],
      code: 11,
      err: [/^parley: @missing\.txt: no such file or folder\n/],
    }),
  ),
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
  {
    name: 'P56: parley ends by SIGTERM while it waits for a FIFO (needs FIFOs)',
    argv: [...events, '--system', '@pipe', '--no-stdin'],
    prepare: makeFifo,
    signal: { name: 'SIGTERM', at: 'err' },
    code: 'SIGTERM',
    err: ['nothing was sent'],
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
  {
    ...good,
    name: 'P57: parley takes the text after a short flag as its value, including =',
    argv: ['chat', '-ma=b', '-qH', 'X-A: b c', '-HX-B: d=e', 'hi'],
    check: ({ server }) =>
      expect(server.requests[0]).toMatch(/models\/a%3Db:[\s\S]*\r\nX-A: b c\r\nX-B: d=e\r\n/),
  },
  ...[['chat'], ['image', '-m', 'm'], ['events', 'send']].map(
    (argv): Row => ({
      ...refused,
      name: `P59: rejects a prompt of ${argv[0]} that begins with a hyphen: '${'-what is it?'}'`,
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
    name: 'P59: rejects a prompt that begins with a flag',
    argv: ['chat', '-mind the gap'],
    stdin: 'hi',
    err: ["parley: unknown flag '-mind the gap'; words that begin with a hyphen go after --"],
  },
  {
    ...refused,
    name: 'P60: parley rejects -v without a command',
    argv: ['-v'],
    err: ["parley: no command was given: 'parley --help' lists the commands; -V prints the version\n"],
  },
])
