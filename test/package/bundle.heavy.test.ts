import { join } from 'node:path'
import { type OutputChunk, rolldown } from 'rolldown'
import { beforeAll, expect, test } from 'vitest'
import config from '../../rolldown.config.ts'
import { execute, preloading } from '../harness/process.ts'
import { readJson, temporaryFolder } from '../harness/run.ts'

const root = join(import.meta.dirname, '../..')
const chunks = new Map<string, OutputChunk>()

beforeAll(async () => {
  const build = await rolldown({ ...config, cwd: root })
  const { output } = await build.generate(config.output)
  for (const chunk of output) if (chunk.type === 'chunk') chunks.set(chunk.fileName, chunk)
})

const librariesIn = (name: string): string[] => [
  ...new Set(
    chunks
      .get(name)
      ?.moduleIds.map((id) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id.replaceAll('\\', '/'))?.[1])
      .filter((library) => library !== undefined),
  ),
]

test('each library is in one chunk of the bundle, and a request loads few chunks', () => {
  const all = [...chunks.keys()].flatMap(librariesIn)
  expect(all.toSorted()).toEqual([...new Set(all)].toSorted())
  expect(librariesIn('main.cjs')).toEqual([])
  expect(librariesIn('program.cjs').toSorted()).toEqual(['commander', 'fastest-levenshtein'])
  expect(librariesIn('request.cjs')).toEqual(['zod'])
  expect(librariesIn('undici-client.cjs')).toEqual(['undici'])
  expect(librariesIn('schema-worker.cjs')).toEqual([])
})

test('no chunk of the bundle contains an HTTP/2 client', () => {
  for (const { fileName, code } of chunks.values()) expect(code, fileName).not.toContain('node:http2')
})

/** Returns the chunks of the bundle that a run of the built program loads. */
async function listLoadedChunks(argv: string[]): Promise<string[]> {
  const cwd = temporaryFolder()
  const recording = preloading(`process.on('exit', () => {
    require('fs').writeFileSync('record.json', JSON.stringify(Object.keys(require.cache)))
  })`)
  await execute(argv, { cwd, env: { ...recording, NODE_DISABLE_COMPILE_CACHE: '1' } })
  const files: string[] = readJson(cwd, 'record.json')
  return files.flatMap((file) => /dist[\\/](?!rolldown-runtime)(.*)\.cjs$/.exec(file)?.[1] ?? []).toSorted()
}

test.each([
  ['--version', ['main']],
  ['-V', ['main']],
  ['completion bash', ['main', 'scripts']],
  ['--help', ['main', 'program']],
  ['chat --help', ['main', 'program']],
  ['chat --nonsense', ['main', 'program']],
  ['init', ['main', 'program']],
  ['config path', ['config', 'main', 'program', 'request', 'tsv']],
])('parley %s loads only the chunks %j', async (argv, chunks) => {
  expect(await listLoadedChunks(argv.split(' '))).toEqual(chunks)
})
