import { expect, test } from 'vitest'
import { execute, start } from '../harness/process.ts'
import { answering, message, type RunOptions, run, temporaryFolder } from '../harness/run.ts'
import { envFor, serve } from '../harness/server.ts'

const github = (argv: string[], world: RunOptions = {}) => run([...argv, '--errors', 'github'], world)

const refusal = (text: string) =>
  answering(JSON.stringify({ error: { type: 'invalid_request_error', message: text } }), {
    status: 400,
    headers: { 'request-id': '::add-mask::x' },
  })

/** Returns the lines with a command of the runner: version 2 at the start of a line, version 1 anywhere. */
const commandsIn = (text: string) =>
  text.split(/\r\n|\r|\n/).filter((line) => line.trimStart().startsWith('::') || /##(vso)?\[/.test(line))

test('--errors github prints a failure as one annotation, and a vertical bar before each further line', async () => {
  const exchange = refusal('100% wrong, you: see\nbelow')
  const { code, err, out } = await github(['chat', 'hi'], { exchange })
  expect({ code, out }).toEqual({ code: 4, out: '' })
  expect(err.split('\n')).toEqual([
    '| parley: the gateway answered 400',
    '|   the service says: 100% wrong, you: see below',
    '|   request id: ::add-mask::x',
    '::error title=parley chat%3A refused (exit 4)::the gateway answered 400%0Athe service says: 100%25 wrong, you: see below%0Arequest id: ::add-mask::x',
    '',
  ])
})

test('--errors github prints a warning as an annotation, also with -q', async () => {
  const exchange = answering(message('x', { stop_reason: '100% full\nstop' }))
  const { code, out, err } = await github(['chat', 'hi', '-q'], { exchange })
  const text = 'the answer was stopped: 100% full stop'
  const lines = ['', `::warning title=parley::${text.replace('%', '%25')}`, `| parley: ${text}`]
  expect([code, out, err.split('\n').sort()]).toEqual([0, 'x\n', lines])
})

const hostile = [
  '::add-mask::x',
  'a\n::stop-commands::pause',
  'a\r::set-output name=x::y',
  'a\u2028::error::x',
  '##[add-mask]x',
  'a ##[group]b ###[endgroup]',
  '##vso[task.setvariable variable=x]y',
  ':: ::error::',
  '%0A::error::x',
]

test.each(hostile)('--errors github disables the workflow command %j in all remote text', async (text) => {
  const failed = await github(['chat', 'hi'], { exchange: refusal(text) })
  expect(commandsIn(failed.err)).toHaveLength(1)
  // Azure's runner reads the annotation as a plain line, so its commands must not appear there either.
  expect(failed.err).not.toMatch(/##(vso)?\[/)
  const image = { inlineData: { mimeType: 'image/png', data: 'aGVsbG8=' } }
  const parts = [{ text }, image, { fileData: { fileUri: `https://x.test/${text}` } }]
  const headers = { 'x-said': text.replace(/[\r\n\u2028]/g, ' ') }
  const native = { candidates: [{ content: { parts }, finishReason: text }], modelVersion: text }
  const drawn = answering(JSON.stringify(native), { headers })
  const pictures = await github(['image', 'a fox', '-m', 'm', '-v', '--usage'], { exchange: drawn })
  const stopped = answering(message('x', { stop_reason: text, model: text }), { headers })
  const cut = await github(['chat', 'hi', '-v', '--usage'], { exchange: stopped })
  expect(cut.err).toContain('the answer was stopped')
  for (const { err } of [failed, pictures, cut]) {
    expect(commandsIn(err).filter((line) => !/^::(error|warning) title=parley/.test(line))).toEqual([])
    expect(err.split('\n').filter((line) => !/^(\| |::(error|warning) |$)/.test(line))).toEqual([])
  }
})

test('--errors github prints a vertical bar before each line of stderr if parley fails or a signal ends parley (needs signals)', async () => {
  const cwd = temporaryFolder()
  const failed = await execute(['chat', 'hi', '--errors', 'github', '-i', 'nowhere'], { cwd })
  expect(failed).toMatchObject({ code: 11 })
  expect(failed.err).toMatch(
    /^\| parley: nowhere: .*\n\| {3}nothing was sent\n::error title=parley chat%3A file \(exit 11\)::nowhere: /,
  )
  const server = await serve(() => child.kill('SIGTERM'))
  const { child, ended } = start(['chat', '--no-stdin', 'hi', '--errors', 'github'], { env: envFor(server) })
  expect((await ended).err).toMatch(
    /^\| parley: (interrupted: .*)\n::error title=parley chat%3A signal \(exit 143\)::\1\n$/,
  )
})
