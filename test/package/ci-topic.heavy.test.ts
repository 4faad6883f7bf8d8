import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { topics } from '../../src/cli/topics.ts'
import { readTopicBlocks } from '../cli/pages.ts'
import { message, readText } from '../harness/run.ts'
import { envFor, response, type Script, serve } from '../harness/server.ts'
import { createJob, type GitHubJob, type Job, type JobCache, runGitHubJob, serveEmulator } from './job.ts'

/** Topics whose blocks this file runs. */
const blocks = Object.fromEntries(
  await Promise.all(
    (['ci', 'github', 'gitlab', 'jenkins-azure', 'kubernetes', 'agents-in-ci', 'review'] as const).map(
      async (topic) => [topic, await readTopicBlocks(topic)] as const,
    ),
  ),
)

/** Returns the code blocks under a heading of a help topic. */
const under = (topic: string, wanted: string): string[] =>
  (blocks[topic] ?? []).filter(({ heading }) => heading === wanted).map(({ text }) => text)

/** Creates a job with a file of notes, and a gateway that follows the script. */
async function jobWith(script: Script) {
  const server = await serve(script)
  const variables = { ...envFor(server), PARLEY_ACCESS_TOKEN: 't', PARLEY_API_KEY: 'k' }
  const job = createJob(variables)
  job.write('notes.md', 'Tea is hot.\n')
  return { job, requests: server.requests, variables }
}

/** Answers every request. Without the header, a script with --retries would wait for minutes. */
const answering =
  (body: string, status = '200 OK'): Script =>
  (socket) =>
    socket.write(response(body, status, ['x-should-retry: false']))

/** Text that contains commands of runners. */
const commands = '::add-mask::a\n::error::b\n##vso[task.setvariable variable=c]d\n##[error]e'
const error = JSON.stringify({ error: { message: commands } })
const isCommand = /^::|##(vso)?\[/m

const says = (text: string) => ({ content: [{ type: 'text', text }] })
const event = (id: string, type: string, fields: object) => ({
  id,
  type,
  processed_at: `2026-01-01T00:00:0${id.slice(1)}Z`,
  ...fields,
})

const reportOf = (job: Job) => JSON.parse(job.read('report.json'))

test('every code block of the help topics about pipelines has a test', () => {
  const headingsOf = (found: { heading: string }[]) => [...new Set(found.map(({ heading }) => heading))]
  const headings = Object.entries(blocks).map(([topic, found]) => [topic, headingsOf(found)])
  expect(Object.fromEntries(headings)).toEqual({
    ci: ['Installing', 'A step', 'Cancelling', 'Secrets and text of strangers'],
    github: ['A step', 'The action', 'No stored secret'],
    gitlab: ['A step', 'A batch'],
    'jenkins-azure': ['Jenkins', 'Azure'],
    kubernetes: ['An image', 'A batch'],
    'agents-in-ci': ['A job that resumes', 'An answer as JSON'],
    review: ['GitHub', 'GitLab', 'Trying a script'],
  })
})

/** Returns the scripts of a workflow or a pipeline: values of `run` and `bash`, joined lines of `script`. */
const scriptsOf = (value: unknown): string[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([key, field]) => {
        if (key === 'script') return [(field as string[]).join('\n')]
        return key === 'run' || key === 'bash' ? [field as string] : scriptsOf(field)
      })

test('each script of a job in a help topic sets -eo pipefail, unless the script is one command', async () => {
  const all = [...Object.values(blocks), await readTopicBlocks('batch')].flat()
  const jobs = all.filter(({ text }) => /^[\w-]+:[ \n]/.test(text))
  const scripts = jobs.flatMap(({ text }) => scriptsOf(parse(text)))
  expect(scripts.length).toBeGreaterThan(15)
  const single = scripts.filter((script) => !/^set -eo pipefail\n/.test(script))
  for (const script of single) expect(script).toMatch(/^(npm install .*|cp .*|jq -[er] '[^']*' [^|;]*)\s*$/)
})

test('the install step of parley help ci fails on a wrong checksum of the package (needs bash and sha256sum)', async () => {
  const job = createJob()
  job.write('parley-cli-0.1.0.tgz', 'a package')
  await job.run('sha256sum parley-cli-0.1.0.tgz > parley-cli-0.1.0.tgz.sha256')
  const install = under('ci', 'Installing')[0] ?? ''
  await job.run(install)
  job.write('parley-cli-0.1.0.tgz', 'another package')
  await job.run(install, 1)
})

test('no page and no workflow installs parley by name from a registry', () => {
  const root = join(import.meta.dirname, '../..')
  const pages = topics.map((topic) => `src/cli/topics/${topic}.txt`)
  for (const file of ['README.md', '.github/actions/ask/action.yml', ...pages])
    expect(readText(root, file)).not.toMatch(/parley-cli@|(npx|install|i) ([^\n]* )?parley-cli\b(?!-\d)/)
})

const [step = ''] = under('ci', 'A step')
const [untrustedStep = ''] = under('ci', 'Secrets and text of strangers')

test('the step of parley help ci saves answer and report, does not wait for stdin, and prints nothing (needs bash)', async () => {
  const { job } = await jobWith(answering(message(commands)))
  expect(await job.run(step)).not.toMatch(isCommand)
  expect(job.read('summary.md')).toBe(`${commands}\n`)
  expect(reportOf(job)).toMatchObject({ exit: 0, usage: { totalTokens: 8 } })
})

test('in parley help ci, the step for untrusted text sends the text unchanged and runs no command in it (needs bash)', async () => {
  const { job, requests } = await jobWith((socket, request) =>
    socket.write(response(request.includes('/events') ? '{"data":[]}' : message('Hi'))),
  )
  await job.run(`echo tea > notes.md
    git init -q . && git add -A && git -c user.name=a -c user.email=a@b.test commit -qm one`)
  const env = { TITLE: '--file=notes.md $(touch evil)', BODY: '@notes.md', SESSION: 's1' }
  await job.run(untrustedStep, 0, { env })
  const texts = requests.map((request) => /"text":("[^"]*")/.exec(request)?.[1])
  expect(texts).toEqual([env.TITLE, env.BODY].map((text) => JSON.stringify(text)))
  expect(requests[0]).toContain('"tea')
  expect(job.has('evil')).toBe(false)
  expect(job.read('out/answer.md')).toBe('Hi\n')
})

const [own = ''] = under('github', 'A step')
const [action = ''] = under('github', 'The action')
const parseJob = (text: string) => (parse(text) as { jobs: { summarise: GitHubJob } }).jobs.summarise

test('the CI job that parley help github prints writes the answer to a file and the tokens to the summary (needs bash and jq)', async () => {
  const { job, variables } = await jobWith(answering(message(commands)))
  const { codes, log } = await runGitHubJob(job, parseJob(own), {
    'vars.GATEWAY_URL': variables.PARLEY_BASE_URL,
    'secrets.GATEWAY_TOKEN': variables.PARLEY_ACCESS_TOKEN,
  })
  expect(codes).toEqual([0, 0, 0])
  expect(log).not.toMatch(isCommand)
  expect(job.read('summary.md')).toBe(`${commands}\n`)
  expect(job.read('step-summary')).toBe('parley: exit 0, 8 tokens\n')
})

test('the GitHub action exists and has the inputs and outputs that parley help github uses (needs bash and jq)', async () => {
  const [checkout, node, ask, copy] = parseJob(action).steps
  expect(`${checkout?.uses} ${node?.uses}`).toMatch(/^actions\/checkout@.* actions\/setup-node@/)
  const file = join(import.meta.dirname, '../..', ask?.uses ?? '', 'action.yml')
  type Parameters = Record<string, { required?: boolean }>
  const { inputs, outputs } = parse(readFileSync(file, 'utf8')) as Record<'inputs' | 'outputs', Parameters>
  const given = Object.keys(ask?.with ?? {})
  const required = Object.keys(inputs).filter((name) => inputs[name]?.required)
  expect(given).toEqual(expect.arrayContaining(required))
  expect(Object.keys(inputs)).toEqual(expect.arrayContaining(given))
  const [, id, output] = /steps\.(\w+)\.outputs\.(\w+)/.exec(copy?.env?.ANSWER ?? '') ?? []
  expect([ask?.id, Object.keys(outputs)]).toEqual([id, expect.arrayContaining([output])])
})

const { summarise } = parse(under('gitlab', 'A step')[0] ?? '') as { summarise: { script: string[] } }
const [jenkins = ''] = under('jenkins-azure', 'Jenkins')
const azure = parse(under('jenkins-azure', 'Azure')[0] ?? '') as { steps: { bash?: string }[] }

const runners: Record<string, { script: string; shell: string[] }> = {
  GitLab: { script: summarise.script.join('\n'), shell: ['bash'] },
  // Groovy removes a line break after a backslash.
  Jenkins: { script: (/sh '''(.*?)'''/s.exec(jenkins)?.[1] ?? '').replace(/\\\n/g, ''), shell: ['bash'] },
  Azure: { script: azure.steps.flatMap(({ bash = [] }) => bash).join('\n'), shell: ['bash', '--noprofile'] },
}

test.each(
  Object.keys(runners).flatMap((name) => [
    [name, 0, '200 OK', message(commands)] as const,
    [name, 8, '200 OK', message('Hi', { stop_reason: 'max_tokens' })] as const,
    [name, 3, '401 No', error] as const,
  ]),
)('the %s step of a help topic exits with %i after %s (needs bash)', async (name, code, status, body) => {
  const { script = '', shell = [] } = runners[name] ?? {}
  const { job } = await jobWith(answering(body, status))
  // Jenkins keeps the folder of the job.
  if (name === 'Jenkins') job.write('summary.md', 'answer of the build before')
  const log = await job.run(script, code, { shell })
  if (name === 'Azure') expect(log).not.toMatch(/##(vso)?\[/)
  expect(job.has('summary.md')).toBe(code === 0)
  expect(reportOf(job)).toMatchObject({ exit: code })
})

const [trapped = ''] = under('ci', 'Cancelling')

test('the trap of parley help ci forwards SIGTERM to parley, and the step continues after parley ends (needs bash and signals)', async () => {
  const { job } = await jobWith((socket, request) => {
    if (request.includes('/stream')) {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
      socket.write(`data: ${JSON.stringify(event('e2', 'agent.message', says('At work')))}\n\n`)
    } else socket.write(response(JSON.stringify({ data: [event('e1', 'user.message', says('Hi'))] })))
  })
  const { child, ended } = job.begin(trapped, { env: { SESSION: 's1' } })
  // Before its first output, a run prints no resume command.
  await expect.poll(() => job.has('log.txt') && job.read('log.txt')).toContain('At work')
  child.kill('SIGTERM')
  expect(await ended).toMatchObject({ code: 143, log: expect.stringContaining('parley events run -s s1') })
  expect(job.has('end.txt')).toBe(true)
})

const reviews = under('review', 'GitHub').map((text) => parse(text) as { jobs: { review: GitHubJob } })
const review = {
  GitHub: reviews[0]?.jobs.review.steps.at(-1)?.run,
  GitLab: (parse(under('review', 'GitLab')[0] ?? '') as { review: { script: string[] } }).review.script[0],
}

test.each([
  ['pass', 'GitHub', 0],
  ['block', 'GitHub', 1],
  ['pass', 'GitLab', 0],
  ['block', 'GitLab', 1],
] as const)(
  'after verdict %s, the %s script of parley help review exits with %i (needs bash, git and jq)',
  async (...row) => {
    const [word, runner, code] = row
    const verdict = { verdict: word, why: 'So</pre>\n\n::error::x' }
    const { job, requests } = await jobWith(answering(message(JSON.stringify(verdict))))
    const git = 'git -c user.name=a -c user.email=a@b.test'
    // The runner of GitHub checks out the target branch, that of GitLab the changed branch.
    await job.run(`
    git init -q . && echo one > code.txt && echo package > parley-cli-0.1.0.tgz
    git add code.txt parley-cli-0.1.0.tgz && ${git} commit -qm one
    git branch base && git checkout -qb change && echo two > code.txt && ${git} commit -qam two
    git checkout -q ${runner === 'GitHub' ? 'base' : 'change'}`)
    const env = { BASE: 'base', CHANGE: 'change', GITHUB_STEP_SUMMARY: join(job.folder, 'step-summary') }
    expect(await job.run(review[runner] ?? '', code, { env })).not.toMatch(/^::/m)
    expect(requests[0]).toContain('+two')
    expect(JSON.parse(job.read('out/review.json'))).toMatchObject({ verdict: word })
    const summary = '<pre>So&lt;/pre&gt;\n\n::error::x</pre>\n'
    if (runner === 'GitHub') expect(job.read('step-summary')).toBe(summary)
  },
)

const rules = (decision: string) =>
  `{"rules":[{"tool":"bash","input":{"command":"ls -l"},"decision":"${decision}"}]}`

const [workflow = ''] = under('agents-in-ci', 'A job that resumes')
const { agent } = (parse(workflow) as { jobs: { agent: GitHubJob } }).jobs

interface Attempt {
  variables: Record<string, string>
  cache: JobCache
  decision: string
  steps?: GitHubJob['steps']
}

/** Runs one attempt in a new folder. */
async function attempt(count: number, { variables, cache, decision, steps = agent.steps }: Attempt) {
  const job = createJob()
  job.write('rules.json', rules(decision))
  const { PARLEY_AGENTS_URL: url = '', PARLEY_API_KEY: key = '' } = variables
  const values = {
    ...{ 'needs.session.outputs.id': 's1', 'vars.AGENTS_URL': url, 'secrets.AGENTS_KEY': key },
    ...{ 'github.run_id': '1', 'github.run_attempt': `${count}` },
  }
  return { job, ...(await runGitHubJob(job, { ...agent, steps }, values, cache)) }
}

const ofTask = { env: { PARLEY_SESSION: 's1' } }
const countTasks = async (variables: Record<string, string>) => {
  const job = createJob(variables)
  await job.step('parley events list --no-stdin --type user.message --ids > ids.txt', ofTask)
  return job.read('ids.txt').trim().split('\n').length
}

test.each([
  ['allow', 0],
  ['deny', 14],
  ['ask', 12],
])('if a policy says %s, the agents-in-ci job exits with %i (needs bash and jq)', async (decision, code) => {
  const variables = await serveEmulator()
  const ended = await attempt(1, { variables, cache: new Map(), decision })
  expect(ended.codes).toEqual(code === 0 ? [0, 0, 0, 0] : [0, code, 0])
  expect(ended.job.read('step-summary')).toMatch(new RegExp(`^exit ${code}, \\d+ tokens, 0\\.\\d+ USD\\n$`))
  expect(ended.artifacts).toEqual(['audit.ndjson', 'transcript.txt', 'report.json'])
  expect(ended.log).not.toMatch(/##(vso)?\[/)
  expect(reportOf(ended.job)).toMatchObject({ exit: code, session: 's1' })
})

test('the agents-in-ci job of parley help fails if a workflow run failed, although its agent finished (needs bash and jq)', async () => {
  const failTask = (run?: string) => run?.replace('Use a tool: list the files', 'start ci {"result":"error"}')
  const steps = agent.steps.map((step) => ({ ...step, run: failTask(step.run) }))
  const variables = await serveEmulator()
  const ended = await attempt(1, { variables, cache: new Map(), decision: 'allow', steps })
  expect(ended.codes).toEqual([0, 0, 1, 0])
  expect(reportOf(ended.job)).toMatchObject({ exit: 0, warnings: { failedWorkflowRuns: 1 } })
})

test('a rerun of the agents-in-ci job of parley help resumes its task after a person answered the tool use (needs bash and jq)', async () => {
  const variables = await serveEmulator()
  const cache: JobCache = new Map()
  expect(await attempt(1, { variables, cache, decision: 'ask' })).toMatchObject({ codes: [0, 12, 0] })
  await createJob(variables).run('parley events confirm --pending --allow > sent.txt', 0, ofTask)
  expect(await attempt(2, { variables, cache, decision: 'ask' })).toMatchObject({ codes: [0, 0, 0, 0] })
  expect(await countTasks(variables)).toBe(1)
})

const [answerScript = ''] = under('agents-in-ci', 'An answer as JSON')

test('the JSON script of parley help agents-in-ci creates its session once, and checks the answer (needs bash and jq)', async () => {
  const answer = JSON.stringify({ verdict: 'pass', why: 'so' })
  let made: { initial_events: object[] } | undefined
  const { job, requests } = await jobWith((socket, request) => {
    const [head = '', body = ''] = request.split('\r\n\r\n')
    if (head.startsWith('POST /v1/sessions HTTP')) {
      made = JSON.parse(body)
      socket.write(response('{"id":"s1"}'))
    } else if (head.includes('/stream')) {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
    } else if (head.includes('/events')) {
      const events = [
        event('e1', 'user.message', made?.initial_events[0] ?? {}),
        event('e2', 'agent.message', says(answer)),
        event('e3', 'session.status_idle', { stop_reason: { type: 'end_turn' } }),
      ]
      socket.write(response(JSON.stringify({ data: events, next_page: null })))
    } else socket.write(response('{"error":"no"}', '404 No'))
  })
  job.write('rules.json', rules('allow'))
  job.write('verdict.json', '{"type":"object","required":["verdict"]}')
  const own = { AGENT: 'a1', ENVIRONMENT: 'e1', TASK: 'Judge "this"' }
  for (let attempt = 1; attempt <= 2; attempt++) {
    await job.run(answerScript, 0, { env: own })
    expect(JSON.parse(job.read('answer.json'))).toEqual(JSON.parse(answer))
  }
  expect(requests.filter((request) => request.startsWith('POST'))).toHaveLength(1)
  expect(made).toEqual({
    agent: 'a1',
    environment_id: 'e1',
    budget: { type: 'limit', max_list_cost: { amount: '250', currency: 'USD' } },
    initial_events: [{ type: 'user.message', content: [{ type: 'text', text: 'Judge "this"' }] }],
  })
})

test('the script of parley help event-types saves files by id and fails on an unsafe id (needs bash and jq)', async () => {
  const listed = [
    { id: 'file_1', filename: '../../evil' },
    { id: 'file_2', filename: 'b.txt', downloadable: false },
    { id: 'file_3', filename: 'd.txt', downloadable: true },
  ]
  const { job, requests } = await jobWith((socket, request) => {
    const [, path = ''] = /^GET (\S+)/.exec(request) ?? []
    const content = /^\/v1\/files\/(\w+)\/content$/.exec(path)
    if (content) socket.write(response(`content of ${content[1]}`, '200 OK', ['content-type: text/plain']))
    else socket.write(response(JSON.stringify({ data: listed, has_more: false })))
  })
  const script = (await readTopicBlocks('event-types')).at(-1)?.text ?? ''
  await job.run(script, 0, { env: { SESSION: 's1' } })
  expect(requests.map((request) => /^GET (\S+)/.exec(request)?.[1])).toEqual([
    '/v1/files?scope_id=s1',
    '/v1/files/file_1/content',
    '/v1/files/file_3/content',
  ])
  for (const request of requests) expect(request).toMatch(/^vendor-beta: .*files-api-2025-04-14/m)
  expect(job.read('files/file_3')).toBe('content of file_3')
  expect(job.read('files.ndjson').trim().split('\n')).toHaveLength(3)
  listed.unshift({ id: '../evil', filename: 'c.txt' })
  await job.run(script, 5, { env: { SESSION: 's1' } })
  expect(requests.some((request) => request.includes('evil/content'))).toBe(false)
})

const scripts = (await readTopicBlocks('policy')).filter(({ text }) => text.startsWith('set '))
const [replayScript = '', loop = ''] = scripts.map(({ text }) => text)

test('the replay script of parley help policy checks a policy against a recorded session offline (needs bash and jq)', async () => {
  const recording = createJob(await serveEmulator())
  recording.write('rules.json', rules('allow'))
  await recording.run(`
    parley events run --no-stdin 'Use a tool: list the files' -s s1 --policy rules.json > x.txt
    parley events list --no-stdin -s s1 --raw > session.ndjson`)
  const job = createJob()
  job.write('session.ndjson', recording.read('session.ndjson'))
  job.write('rules.json', rules('allow'))
  await job.run(replayScript)
  expect(job.read('transcript.txt')).toBe(recording.read('x.txt'))
  job.write('rules.json', rules('deny'))
  await job.run(replayScript, 14)
  const [message = ''] = recording.read('session.ndjson').split('\n')
  job.write('session.ndjson', message)
  await job.run(replayScript, 1)
  job.write('session.ndjson', recording.read('session.ndjson'))
  const stricter = await job.run(replayScript.replace(/^parley policy check.*\n.*$/m, ''), 4)
  expect(stricter).toContain('expected user.tool_confirmation')
})

test('the loop of parley help policy lets a program decide about the waiting tool uses (needs bash and jq)', async () => {
  const job = createJob(await serveEmulator())
  job.write('decide', '#!/bin/sh\nexec jq -e \'.name == "bash"\' > /dev/null\n')
  await job.run('chmod +x decide')
  await job.run(loop, 14, { env: { SESSION: 's1', TASK: 'use bash {}\nuse rm {}\nthen use bash {}' } })
  await job.run('parley events list --no-stdin -s s1 --raw > all.txt')
  expect(job.read('all.txt').match(/"result":"deny"/g)).toHaveLength(1)
  expect(job.read('answer.txt')).toBe('The emulated agent is done.\n')
})

const [fixedAnswerScript = ''] = under('review', 'Trying a script')

test('the script in parley help review runs a review script with a fixed answer, without a model (needs bash and jq)', async () => {
  const job = createJob()
  job.write('review.sh', "#!/bin/sh\nparley chat --no-stdin -q 'Review' | jq -er .verdict > verdict.txt\n")
  await job.run('chmod +x review.sh')
  await job.run(fixedAnswerScript)
  expect(job.read('verdict.txt')).toBe('pass\n')
})

type Texts = Record<string, string>
const { permissions, env } = parse(under('github', 'No stored secret')[0] ?? '') as Record<string, Texts>

test('the job of parley help github exchanges its identity token for an access token (needs sh, curl and jq)', async () => {
  const { job, requests, variables } = await jobWith((socket, request) => {
    const [, path = ''] = /^\w+ (\S+)/.exec(request) ?? []
    if (path.startsWith('/oidc')) socket.write(response('{"value":"proof-of-the-job"}'))
    else if (path === '/token') socket.write(response('{"access_token":"token-of-the-gateway"}'))
    else socket.write(response(message('Hi')))
  })
  const url = variables.PARLEY_BASE_URL
  const at = (text = '') => text.replaceAll('https://gateway.example', url)
  const given = {
    PARLEY_BASE_URL: at(env?.PARLEY_BASE_URL),
    PARLEY_ACCESS_TOKEN: '',
    PARLEY_ACCESS_TOKEN_COMMAND: at(env?.PARLEY_ACCESS_TOKEN_COMMAND),
    ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/oidc?api-version=2`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'token-of-the-runner',
  }
  expect(await job.run("parley chat --no-stdin 'Say hello' > answer.txt", 0, { env: given })).toBe('')
  expect(job.read('answer.txt')).toBe('Hi\n')
  expect(permissions).toEqual({ contents: 'read', 'id-token': 'write' })
  const [oidc = '', token = '', chat = ''] = requests
  expect(oidc).toMatch(/^GET \/oidc\?api-version=2&audience=gateway /)
  expect(oidc).toMatch(/^authorization: Bearer token-of-the-runner\r$/im)
  expect(JSON.parse(token.split('\r\n\r\n')[1] ?? '')).toEqual({ subject_token: 'proof-of-the-job' })
  expect(chat).toMatch(/^authorization: Bearer token-of-the-gateway\r$/im)
})
