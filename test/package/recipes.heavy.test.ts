import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { npm, pack } from '../harness/npm.ts'
import { temporaryFolder } from '../harness/run.ts'

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** The shell blocks of the page, in their order; those after this heading have a stdin that never ends. */
const heading = '### In scripts and in CI'
const blocks = readme.split(heading).flatMap((part, index) =>
  [...part.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => ({
    block,
    stdin: index === 0 ? '/dev/null' : '&3',
  })),
)

/** What may be said on stderr, and where the page says so. */
const announced: [RegExp, string][] = [
  [/^parley: interrupted: no longer listening$/, '`kill $!` stops it'],
  [/^\| /, 'what the model says beside an image is on stderr, after `|`'],
  [/^parley: \d+ ok · 0 failed · .* tokens · \d+ s$/, 'the counts are on stderr'],
  [/^parley: PARLEY_\w+ in the environment overrides it$/, 'stderr says where the environment overrides it'],
]

const shells = {
  bash: ['bash'],
  dash: ['dash'],
  // As a person's: it takes `# …` for words.
  'zsh -i': ['zsh', '-f', '-i', '+o', 'promptsp', '+o', 'promptcr'],
  'bash -eo pipefail': ['bash', '-eo', 'pipefail'],
}

/** Where the package is installed, and what stands in for programs that are not parley's. */
const prefix = temporaryFolder()
let install = ''

beforeAll(() => {
  const tarball = pack(prefix)
  npm('install', '-g', '--prefix', prefix, tarball)
  install = `npm pack && npm install -g ./${basename(tarball)}`
  mkdirSync(join(prefix, 'stubs'))
  writeFileSync(join(prefix, 'stubs/magick'), '#!/bin/sh\ncat > "$2"\n')
  chmodSync(join(prefix, 'stubs/magick'), 0o755)
})

test('the page says how what was packed is installed', () => {
  expect(readme).toContain(`    ${install}\n`)
})

test('no recipe has what an interactive shell reads in its own way', () => {
  for (const { block } of blocks) expect(block).not.toMatch(/(^|\s)#|!/)
})

for (const [name, [shell = '', ...flags]] of Object.entries(shells)) {
  test(`every recipe runs as printed in ${name} (needs ${shell}, git, jq, mkfifo and GNU split)`, async () => {
    const { out, err } = await paste(shell, flags)
    const ended = err.match(/^the block ended: \d+$/gm)
    expect(ended, err).toEqual(blocks.map(() => 'the block ended: 0'))
    const expected = [/^$/, /^the block ended/, ...announced.map(([pattern]) => pattern)]
    expect(err.split('\n').filter((line) => !expected.some((pattern) => pattern.test(line)))).toEqual([])
    for (const sign of [
      'Why is the sky blue?',
      'a-red-fox.png',
      '“Define: ice”',
      'The emulated agent is done.',
      '@notes.md',
    ])
      expect(out).toContain(sign)
  })
}

test('the page announces what is said beside its recipes', () => {
  const page = readme.replace(/\s+/g, ' ')
  for (const [, sentence] of announced) expect(page).toContain(sentence)
})

/** What a shell prints that reads the page's blocks one after the other, as a person would paste them. */
async function paste(shell: string, flags: string[]): Promise<{ out: string; err: string }> {
  const port = await freePort()
  const pasted = blocks.map(({ block, stdin }) => `{\n${block}} <${stdin}\necho "the block ended: $?" >&2\n`)
  const folder = temporaryFolder()
  const child = spawn(shell, flags, {
    cwd: folder,
    env: {
      PATH: [join(prefix, 'bin'), join(prefix, 'stubs'), process.env.PATH].join(':'),
      HOME: folder,
      PS1: '',
      PS2: '',
    },
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    // Without a terminal, and what it starts can be ended with it.
    detached: true,
  })
  onTestFinished(() => {
    if ((child.exitCode ?? child.signalCode) === null) process.kill(-(child.pid ?? 0), 'SIGKILL')
  })
  const { stdin, stdout, stderr } = child
  stdin.end(`trap 'kill $!' EXIT\n${pasted.join('').replaceAll('8765', String(port))}`)
  const [out, err] = await Promise.all([text(stdout), text(stderr)])
  return { out, err }
}

/** A port that is free, of those that no system gives out by itself. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const server = createServer().listen(port, '127.0.0.1')
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    server.close()
    if (isFree) return port
  }
}
