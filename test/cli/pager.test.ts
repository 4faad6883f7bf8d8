import { expect, test } from 'vitest'
import type { Host } from '../../src/basic-context.ts'
import { type RunOptions, run, temporaryFolder } from '../harness/run.ts'
import { runAtTerminal } from '../harness/typing.ts'
import { readCommandHelp } from './pages.ts'

type Shown = Parameters<NonNullable<Host['runPager']>>[0]

/** Runs parley on a terminal of 24 rows with a pager that ends with this code. */
async function runPaged(argv: string[], world: RunOptions = {}, code?: number) {
  const shown: Shown[] = []
  const runPager: Host['runPager'] = async (command) => {
    shown.push(command)
    return code
  }
  const terminal: RunOptions = { tty: ['stdout', 'stderr'], columns: 80, rows: 24, ...world }
  const ended = await run(argv, { ...terminal, env: { PAGER: 'pg', ...world.env }, runPager })
  return { ...ended, shown }
}

const long = ['help ci', 'chat --help', 'events send -h', '--help', 'help']
test.each(long)('parley %s shows long help in the pager', async (line) => {
  const { code, out, err, shown } = await runPaged(line.split(' '))
  expect([code, out, err]).toEqual([0, '', ''])
  const printed = await run([...line.split(' '), '--no-pager'], { tty: ['stdout'], columns: 80 })
  expect(shown).toMatchObject([{ text: 'pg', input: printed.out }])
})

test.each<[env: Record<string, string>, pager: string, less: string]>([
  [{ PARLEY_PAGER: 'more -d', PAGER: 'pg' }, 'more -d', 'FRX'],
  [{ PAGER: 'less -S | cat', LESS: '-i' }, 'less -S | cat', '-i'],
  [{ LESS: '' }, 'pg', ''],
])('PARLEY_PAGER precedes PAGER, and parley sets LESS only if it is unset: %j', async (env, text, less) => {
  const { shown } = await runPaged(['help', 'ci'], { env })
  expect(shown).toMatchObject([{ text, env: { LESS: less } }])
})

test.each<[why: string, argv: string, world: RunOptions]>([
  ['with --no-pager', 'help ci --no-pager', {}],
  ['if PARLEY_PAGER is empty', 'help ci', { env: { PARLEY_PAGER: '' } }],
  ['if PAGER is cat', 'help ci', { env: { PAGER: 'cat' } }],
  ['on a dumb terminal', 'help ci', { env: { TERM: 'dumb' } }],
  ['in a pipe', 'help ci', { tty: [] }],
  ['on Windows if no variable names a pager', 'help ci', { env: { PAGER: undefined }, platform: 'win32' }],
  ['with --json', 'help chat --json', {}],
  ['for a group without a subcommand', 'events', { rows: 5 }],
])('help does not use the pager %s', async (_, argv, world) => {
  const { code, out, shown } = await runPaged(argv.split(' '), world)
  expect([code, shown, out.length > 500]).toEqual([0, [], true])
})

test('parley prints help without the pager if the text and the next prompt fit on the terminal', async () => {
  const rows = (await readCommandHelp('chat')).trimEnd().split('\n').length + 1
  expect((await runPaged(['chat', '--help'], { rows })).shown).toEqual([])
  expect((await runPaged(['chat', '--help'], { rows: rows - 1 })).shown).toHaveLength(1)
  // Lines that are wider than the terminal need several rows, but color codes need none.
  expect((await runPaged(['chat', '--help'], { rows, columns: 60 })).shown).toHaveLength(1)
  expect((await runPaged(['chat', '--help', '--color', 'always'], { rows })).shown).toEqual([])
})

test.each([
  [0, 0],
  [130, 0],
  [undefined, 0],
  [1, 1],
  [127, 1],
])('after the pager ends with %s (undefined: a signal), help is printed %i times', async (code, count) => {
  const ended = await runPaged(['help', 'ci'], {}, code)
  expect([ended.code, ended.shown.length]).toEqual([0, 1])
  expect(ended.out.match(/parley in a pipeline/g) ?? []).toHaveLength(count)
})

test('the pager has the terminal and reads the whole text (needs script)', async () => {
  // This pager prints two lines and ends at the first key.
  const pg = 'head -n 2; cat >/dev/null; printf "page> "; read key </dev/tty; printf "<%s>" "$key"'
  const command = `stty rows 10 cols 80; PAGER='sh pg' "$NODE" "$PARLEY" help ci; echo "exit $?"`
  const { screen } = await runAtTerminal(command, temporaryFolder({ pg }), [['page> ', 'q\n']])
  expect(screen).toContain('parley in a pipeline')
  expect(screen).toMatch(/<q>[\r\n]*exit 0/)
})
