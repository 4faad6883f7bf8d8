import { type Command, InvalidArgumentError, Option } from 'commander'
import { addValue, FileFlag, parseCount } from '../argv/flags.ts'
import type { Context } from '../context.ts'
import { createEmulator, faultEndpoints } from '../emulator/emulator.ts'
import { faultKinds, parseFault } from '../emulator/faults.ts'
import { listen } from '../emulator/listen.ts'
import { logToFile, logToStream } from '../emulator/log.ts'
import { type StreamStyle, streamStyles } from '../emulator/sessions/session-stream.ts'
import { taskForms } from '../emulator/sessions/task.ts'
import { CliError, fileProblem, usage } from '../errors.ts'
import { oneLine } from '../io/escape.ts'
import { absolutePath } from '../io/paths.ts'
import { durationForms, parseDuration } from '../settings/duration.ts'
import { isLoopback } from '../wire/address.ts'

interface ServeOptions {
  port: number
  host: string
  accessToken?: string
  apiKey?: string
  strict?: boolean
  fault?: string[]
  rate?: number
  latency: number
  chunkDelay: number
  streamStyle?: StreamStyle[]
  seed: string
  log?: string
}

export function declare(command: Command): void {
  command
    .option('--port <n>', 'port; 0 takes a free one', parseWhole, 0)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--access-token <token>', 'the token to ask for (default: made up)')
    .option('--api-key <key>', 'the API key to ask for (default: made up)')
    .option('--strict', 'refuse unknown betas and sessions, and the like')
    .option(
      '--fault <spec>',
      `fail on request, repeatable: 429x2, chat:500, 402, ${faultKinds.join(', ')}`,
      addValue,
    )
    .option('--rate <n>', 'at most n requests a second in all; 429 beyond it', parseCount)
    .option('--latency <ms>', 'wait before each answer, or 500ms, 2s', parseMilliseconds, 0)
    .option('--chunk-delay <ms>', 'wait between the pieces of a stream', parseMilliseconds, 0)
    .addOption(
      new Option('--stream-style <style>', 'what streams of events do, repeatable')
        .choices(streamStyles)
        .argParser(parseStyle),
    )
    .option('--seed <text>', 'vary the generated answers', '0')
    .addOption(new FileFlag('--log <file>', 'log requests to a file, too', 'writes'))
}

function parseStyle(value: string, earlier: StreamStyle[] = []): StreamStyle[] {
  const style = streamStyles.find((each) => each === value)
  if (!style) throw new InvalidArgumentError(`Allowed choices are ${streamStyles.join(', ')}.`)
  return [...earlier, style]
}

function parseWhole(value: string): number {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError('not a whole number')
  return Number(value)
}

function parseMilliseconds(value: string): number {
  const milliseconds = parseDuration(value, 'ms')
  if (milliseconds === undefined || milliseconds >= 2 ** 31)
    throw new InvalidArgumentError(`not a duration ${durationForms}; a bare number is milliseconds`)
  return milliseconds
}

export const notes = [
  'It prints one line of JSON when it listens. A fault without xN happens every time; chat:, image:, events:, list:, follow: or session: limits it to one endpoint.',
  `In a message "a tool", "two tools" or lines such as these make the agent ask for tool uses, and wait for the answers.\n${taskForms}`,
  'Stream styles: message names every event "message", comments adds comments, deltas sends a message in pieces first, replay begins with all that was, receipts gives receipts ids of their own. POST /v1/sessions takes initial_events, and a budget in cents; usage comes before each rest. The 32 MiB of sessions used last are kept.',
]

export const examples = [
  'parley serve --port 8080 --access-token t &',
  "PARLEY_ACCESS_TOKEN=t parley chat --base-url http://127.0.0.1:8080 'Say hello'",
]

const listenProblems = new Map<string | undefined, string>([
  ['EADDRINUSE', 'the port is in use'],
  ['EADDRNOTAVAIL', 'it is not an address of this machine'],
  ['ENOTFOUND', 'no such host'],
  ['EAI_AGAIN', 'the name cannot be looked up at the moment'],
])

export async function run(
  { output, note, host, cleanups, secrets, calls, timers, flags }: Context,
  options: ServeOptions,
): Promise<void> {
  const accessToken = options.accessToken ?? crypto.randomUUID()
  const apiKey = options.apiKey ?? crypto.randomUUID()
  secrets.add(accessToken)
  secrets.add(apiKey)
  const session = options.strict ? { session: `sesn_${crypto.randomUUID().replaceAll('-', '')}` } : undefined
  const exchange = createEmulator({
    accessToken,
    apiKey,
    ...(session ? { sessions: [session.session] } : {}),
    isStrict: options.strict ?? false,
    onDoubt: (doubt) => note(`${doubt}: with --strict that is 400`),
    faults: (options.fault ?? []).map((spec) => parseFault(spec, faultEndpoints)),
    ...(options.rate === undefined ? {} : { limit: { rate: options.rate, now: timers.now } }),
    latency: options.latency,
    chunkDelay: options.chunkDelay,
    seed: options.seed,
    streamStyles: options.streamStyle ?? [],
  })
  const logs = [
    ...(flags.quiet ? [] : [logToStream(host.stderr.open())]),
    ...(options.log === undefined ? [] : [await logToFile(absolutePath(host, options.log), options.log)]),
  ]
  cleanups.add(() => {
    for (const log of logs) log.flush()
  })
  const server = await listen({
    port: options.port,
    host: options.host,
    exchange,
    onRequest({ method, path, status }) {
      const what = oneLine(secrets.redact(`${method} ${path}`), 300)
      const line = `${new Date(timers.date()).toISOString()} ${what} ${status ?? 'broken off'}`
      for (const log of logs) log.add(line)
    },
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_SOCKET_BAD_PORT') throw usage('--port must be from 0 to 65535')
    const why = listenProblems.get(error.code) ?? fileProblem(error)
    throw new CliError('file', `cannot listen on ${options.host}:${options.port}: ${why}`)
  })
  if (!isLoopback(options.host)) note(`listening on ${options.host}: other machines may reach it`)
  const address = `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${server.port}`
  await output.write(
    `${JSON.stringify({ baseUrl: address, agentsUrl: address, accessToken, apiKey, ...session })}\n`,
  )
  calls.sayInstead(() => 'no longer listening')
  await new Promise((resolve) => server.once('close', resolve))
}
