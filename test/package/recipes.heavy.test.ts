import { spawn } from 'node:child_process'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { childEnvironment } from '../harness/environment.ts'
import { npm, pack } from '../harness/npm.ts'
import { message, readText, temporaryFolder } from '../harness/run.ts'
import { response, serve } from '../harness/server.ts'
import { createJob } from './job.ts'

const root = join(import.meta.dirname, '../..')
const readme = readText(root, 'README.md')

/** Shell blocks of the README in order. Blocks for scripts get a stdin that never ends. */
const blocks = readme.split('\n## Scripts and CI').flatMap((part, index) =>
  [...part.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => ({
    block,
    stdin: index === 0 ? '/dev/null' : '&3',
  })),
)

const demoNote = 'They use the demo; each command that sends something prints a note about the demo on stderr'
const nameNote = "`-o` writes the answer to a file, replacing it, and prints the file's name on stderr"

/** Lines that recipes may print on stderr, and the sentences of the README that explain them. */
const explained: [RegExp, string][] = [
  [/^parley: the demo profile: /, demoNote],
  [/^parley: the answer is in (answer|summary)\.md$/, nameNote],
  [/^\| /, 'Text from the model goes to stderr, with `|` before each line'],
]

const shells = {
  bash: ['bash'],
  dash: ['dash'],
  // A person's interactive zsh, which does not treat `#` as a comment.
  'zsh -i': ['zsh', '-f', '-i', '+o', 'promptsp', '+o', 'promptcr'],
  'bash -eo pipefail': ['bash', '-eo', 'pipefail'],
}

/** Folder where the package is installed. */
const prefix = temporaryFolder()
let install = ''

beforeAll(() => {
  const tarball = pack(prefix)
  npm('install', '-g', '--prefix', prefix, tarball)
  install = `npm pack && npm install -g ./${basename(tarball)}`
})

test('README.md shows how to install the package', () => {
  expect(readme).toContain(`    ${install}\n`)
})

for (const [name, [shell = '', ...flags]] of Object.entries(shells)) {
  test(`every command of README.md runs as printed in ${name} (needs ${shell} and jq)`, async () => {
    const { out, err } = await paste(shell, flags)
    const ended = err.match(/^the block ended: \d+$/gm)
    expect(ended, err).toEqual(blocks.map(() => 'the block ended: 0'))
    const expected = [/^$/, /^the block ended/, ...explained.map(([pattern]) => pattern)]
    expect(err.split('\n').filter((line) => !expected.some((pattern) => pattern.test(line)))).toEqual([])
    const signs = ['Review this:', 'a-red-fox.png', 'snow.png', 'hello.png', 'STOP', 'session.status_idle']
    for (const sign of [...signs, 'not now', 'Summarise']) expect(out).toContain(sign)
  })
}

test.each([
  ['200 OK', 0],
  ['401 No', 3],
  ['429 Wait', 75],
  ['500 No', 75],
])('after the answer %s, the script in README.md exits with %i (needs sh)', async (status, code) => {
  const block = blocks.find((each) => each.block.includes('summarise.sh'))?.block ?? ''
  const server = await serve((socket) => socket.write(response(message('Hi'), status)))
  const job = createJob({ PARLEY_BASE_URL: server.url, PARLEY_ACCESS_TOKEN: 't' })
  job.write('notes.md', 'Tea is hot.')
  const log = await job.run(block, code, { shell: ['sh'] })
  expect(log.includes('Hi\n')).toBe(code === 0)
  expect(log.includes('try again later')).toBe(code === 75)
})

test('README.md explains everything that its commands print on stderr', () => {
  const page = readme.replace(/\s+/g, ' ')
  for (const [, sentence] of explained) expect(page).toContain(sentence)
})

/** Pastes the blocks of the README into a shell, one after the other, and returns its output. */
async function paste(shell: string, flags: string[]): Promise<{ out: string; err: string }> {
  const pasted = blocks.map(({ block, stdin }) => `{\n${block}} <${stdin}\necho "the block ended: $?" >&2\n`)
  const folder = temporaryFolder()
  const child = spawn(shell, flags, {
    cwd: folder,
    env: {
      ...childEnvironment,
      PATH: `${join(prefix, 'bin')}:${process.env.PATH}`,
      HOME: folder,
      PS1: '',
      PS2: '',
    },
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    // A detached shell has no terminal, and the test can kill its whole process group.
    detached: true,
  })
  onTestFinished(() => {
    if ((child.exitCode ?? child.signalCode) === null) process.kill(-(child.pid ?? 0), 'SIGKILL')
  })
  const { stdin, stdout, stderr } = child
  stdin.end(pasted.join(''))
  const [out, err] = await Promise.all([text(stdout), text(stderr)])
  return { out, err }
}
