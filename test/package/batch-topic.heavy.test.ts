import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readTopicBlocks } from '../cli/pages.ts'
import { message, parseLines } from '../harness/run.ts'
import { response, serve } from '../harness/server.ts'
import schema from './job.schema.json' with { type: 'json' }
import { createJob, type GitHubJob, type Job, type JobCache, runGitHubJob, serveEmulator } from './job.ts'

/** Returns the only block of a topic under a heading. */
async function blockOf(topic: string, wanted: string): Promise<string> {
  const found = (await readTopicBlocks(topic)).filter(({ heading }) => heading === wanted)
  expect(found).toHaveLength(1)
  return found[0]?.text ?? ''
}

const byHand = await blockOf('clusters', 'By hand')
const gitHub = await blockOf('batch', 'GitHub Actions')
const gitLab = await blockOf('gitlab', 'A batch')
const manifest = await blockOf('kubernetes', 'A batch')

const count = 25
const prompts = Array.from({ length: count }, (_, at) => `"prompt ${at + 1}"\n`).join('')
const indexes = Array.from({ length: count }, (_, at) => at + 1)

const read = (job: Job, name: string): { index: number }[] => parseLines(job.read(name))

/** Starts a gateway that records the numbers of the requested prompts. */
async function startGateway() {
  const requested: number[] = []
  const server = await serve((socket, request) => {
    requested.push(Number(/prompt (\d+)/.exec(request)?.[1]))
    socket.write(response(message('Hi')))
  })
  const variables = { PARLEY_BASE_URL: server.url, PARLEY_ACCESS_TOKEN: 't' }
  return { requested, variables }
}

test('the script of parley help clusters joins three shares in the order of the input (needs bash and jq)', async () => {
  const job = createJob(await serveEmulator())
  job.write('prompts.ndjson', prompts)
  await job.run(byHand)
  expect(read(job, 'all.ndjson').map(({ index }) => index)).toEqual(indexes)
})

const joinScript = byHand.replace(/^parley .*\n {2}--.*\n/gm, '')
const result = (index: number) => `${JSON.stringify({ index, hash: `h${index}`, ok: true })}\n`

test('the join commands of parley help clusters fail and print the number of a line without a result (needs bash and jq)', async () => {
  const job = createJob()
  // The second line is empty, so it needs no result.
  job.write('prompts.ndjson', '"a"\n\n"c"\n"d"\n')
  for (const [at, text] of [result(4), result(1), ''].entries()) job.write(`r${at + 1}.ndjson`, text)
  expect(await job.run(joinScript, 1)).toMatch(/^< 3$/m)
})

const { jobs } = parse(gitHub) as {
  jobs: {
    batch: GitHubJob & { strategy: { matrix: { share: number[] } } }
    join: GitHubJob & { needs: string }
  }
}
const shares = jobs.batch.strategy.matrix.share

/** Runs one share in a new folder. */
async function runShare(
  share: number,
  attempt: number,
  { variables, cache }: { variables: Record<string, string>; cache: JobCache },
) {
  const job = createJob()
  job.write('prompts.ndjson', prompts)
  const values: Record<string, string> = {
    'matrix.share': `${share}`,
    'github.run_id': '1',
    'github.run_attempt': `${attempt}`,
    'vars.GATEWAY_URL': variables.PARLEY_BASE_URL ?? '',
    'secrets.GATEWAY_TOKEN': variables.PARLEY_ACCESS_TOKEN ?? '',
  }
  const { codes, artifacts } = await runGitHubJob(job, jobs.batch, values, cache)
  return { job, code: codes.at(-1), artifacts }
}

test('the GitHub matrix of parley help batch requests each line once and joins the results (needs bash and jq)', async () => {
  const { variables, requested } = await startGateway()
  const cache: JobCache = new Map()
  const ended = await Promise.all(shares.map((share) => runShare(share, 1, { variables, cache })))
  expect(ended.map(({ code }) => code)).toEqual([0, 0, 0])
  expect(requested.toSorted((one, other) => one - other)).toEqual(indexes)
  const joining = createJob()
  for (const [at, { job, artifacts }] of ended.entries()) {
    expect(artifacts).toEqual(['results.ndjson', 'report.json'])
    mkdirSync(join(joining.folder, `share-${at + 1}`))
    joining.write(`share-${at + 1}/results.ndjson`, job.read('results.ndjson'))
  }
  joining.write('prompts.ndjson', prompts)
  expect(jobs.join.needs).toBe('batch')
  expect(await runGitHubJob(joining, jobs.join, {})).toMatchObject({ codes: [0] })
  expect(read(joining, 'all.ndjson').map(({ index }) => index)).toEqual(indexes)
  joining.write('share-2/results.ndjson', '')
  expect(await runGitHubJob(joining, jobs.join, {})).toMatchObject({ codes: [1] })
})

const { batch, join: joining } = parse(gitLab) as {
  join: { needs: string[]; script: string[] }
  batch: {
    parallel: number
    retry: { max: number; exit_codes: number[] }
    script: string[]
    cache: { paths: string[] }
    artifacts: { paths: string[] }
  }
}
const script = batch.script.join('\n')

test('the parallel GitLab jobs of parley help gitlab request each line once and join the results (needs bash and jq)', async () => {
  const { variables, requested } = await startGateway()
  const whole = createJob()
  for (let node = 1; node <= batch.parallel; node++) {
    const job = createJob(variables)
    job.write('prompts.ndjson', prompts)
    const env = { CI_NODE_INDEX: `${node}`, CI_NODE_TOTAL: `${batch.parallel}` }
    await job.run(script, 0, { env })
    whole.write(`results-${node}.ndjson`, job.read(`results-${node}.ndjson`))
  }
  expect(joining.needs).toEqual(['batch'])
  whole.write('prompts.ndjson', prompts)
  await whole.run(joining.script.join('\n'))
  expect(read(whole, 'all.ndjson').map(({ index }) => index)).toEqual(indexes)
  whole.write('results-2.ndjson', '')
  await whole.run(joining.script.join('\n'), 1)
  expect(batch.cache.paths).toEqual(['results-*.ndjson'])
  expect(batch.artifacts.paths).toEqual(['results-*.ndjson'])
  expect(requested.toSorted((one, other) => one - other)).toEqual(indexes)
})

const parsed = parse(manifest) as {
  spec: {
    completions: number
    podFailurePolicy: { rules: { action: string; onExitCodes?: { values: number[] } }[] }
    template: { spec: { containers: { command: string[]; args: string[]; env: { name: string }[] }[] } }
  }
}

test('the manifest of parley help kubernetes matches the published schema of Kubernetes jobs', () => {
  const check = new Ajv2020({ strict: false, allErrors: true }).compile(schema)
  check(parsed)
  expect(check.errors ?? []).toEqual([])
})

/** Expands `$(NAME)` like the kubelet: an unknown variable stays as it is. */
const expand = (text: string, env: Record<string, string>) =>
  text.replace(/\$\$|\$\(([^)]*)\)/g, (found, name) => (found === '$$' ? '$' : (env[name] ?? found)))

test('the pods of parley help kubernetes request each line once and do not retry a permanent failure (needs sh)', async () => {
  const [container] = parsed.spec.template.spec.containers
  const { variables, requested } = await startGateway()
  const job = createJob()
  for (const name of ['in', 'out']) mkdirSync(join(job.folder, name))
  job.write('in/prompts.ndjson', prompts)
  const run = (index: number, variables: Record<string, string>) => {
    const env = { JOB_COMPLETION_INDEX: `${index}`, ...variables }
    const script = expand(container?.args.join(' ') ?? '', env).replace(/\/(in|out)\//g, './$1/')
    return job.step(script, { env, shell: ['sh'] })
  }
  expect(container?.command).toEqual(['sh', '-c'])
  expect(container?.env.map(({ name }) => name)).toEqual(Object.keys(variables))
  for (let index = 0; index < parsed.spec.completions; index++)
    expect(await run(index, variables)).toMatchObject({ code: 0 })
  expect(requested.toSorted((one, other) => one - other)).toEqual(indexes)
  expect(read(job, 'out/0.ndjson').map(({ index }) => index)).toEqual([1, 11, 21])
  // A pod that runs again finds its results, so it sends no request.
  expect(await run(0, variables)).toMatchObject({ code: 0 })
  expect(requested).toHaveLength(count)
  const rule = parsed.spec.podFailurePolicy.rules.find(({ action }) => action === 'FailIndex')
  const refusing = await serve((socket) => socket.write(response('{"error":"no"}', '401 No')))
  job.write('out/0.ndjson', '')
  const { code } = await run(0, { ...variables, PARLEY_BASE_URL: refusing.url })
  expect(rule?.onExitCodes?.values).toContain(code)
})
