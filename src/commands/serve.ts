import { getSystemErrorMap } from 'node:util'
import { Option } from 'commander'
import { appendFlagValue, FileFlag, parseWholeNumber, TextFlag } from '../argv/flags.ts'
import type { Context } from '../context.ts'
import { createEmulator } from '../emulator/emulator.ts'
import { faultKinds } from '../emulator/faults.ts'
import { formatServerUrl, startEmulatorServer } from '../emulator/server.ts'
import { taskStepHelp } from '../emulator/sessions/task.ts'
import { CliError, usageError } from '../errors.ts'
import { toOneLine } from '../io/escape.ts'
import { listRecordedEvents, readInputEvents } from '../sessions/sending/input-events.ts'
import { durationExamples, parseDurationMs } from '../settings/duration.ts'
import { isLoopbackHost } from '../wire/address.ts'
import type { CommandModule } from './command.ts'

interface ServeOptions {
  port: number
  host: string
  accessToken?: string
  apiKey?: string
  strict?: boolean
  fault?: string[]
  latency: number
  answer?: string
  session?: string
}

export default {
  parameters: () => [
    new Option('--port <n>', 'port; 0 chooses a free port').argParser(parseWholeNumber).default(0),
    new Option('--host <address>', 'address to listen on').default('127.0.0.1'),
    new Option('--access-token <token>', 'the required token (default: random)'),
    new Option('--api-key <key>', 'the required API key (default: random)'),
    new Option('--strict', 'refuse undocumented betas and unknown sessions'),
    new Option(
      '--fault <spec>',
      `simulate failures, repeatable: 429x2, chat:500, 402, ${faultKinds.join(', ')}, or rate:10`,
    ).argParser(appendFlagValue),
    new Option('--latency <ms>', 'delay of each answer: 500 (ms) or 2s')
      .argParser(parseMilliseconds)
      .default(0),
    new TextFlag('--answer <text>', 'the answer to every prompt, or @FILE'),
    new FileFlag('--session <file>', "replay a session recorded with 'events list --raw'"),
  ],

  notes: [
    'Prints one JSON line with its addresses and credentials. --fault reset breaks the connection before the answer, and cut during the answer; stall never answers; html sends a login page. 429x2 happens twice, a fault without xN every time. The prefix chat:, image:, events:, list:, follow: or session: limits a fault to that endpoint. rate:10 answers 429 to requests above 10 per second.',
    `To script the agent, send "use a tool", "use two tools" or lines such as these:\n${taskStepHelp}`,
    'A prompt with "in 3 parts" gets 3 responses (finish reason CONTINUATION). The events of a workflow run come at intervals of --latency. The emulator answers a message with 400 if the session waits for a reply to a tool use, or is over its budget. It answers a reply with 409 if its tool use is not waiting.',
    'With --session, every session replays the recorded one. When you send an event, the emulator finds it in the recording and plays the events after it. A reply must have the recorded tool use and decision; a message may have any text. For any other event the emulator answers 409 and names the expected event.',
  ],

  examples: [
    'parley serve --port 8080 --access-token t &',
    "PARLEY_ACCESS_TOKEN=t parley chat --base-url http://127.0.0.1:8080 'Say hello'",
  ],

  async run(context, options: ServeOptions) {
    const { host, input, output, messages, secrets, tracker } = context
    const { fault, latency, strict, answer, session } = options
    const credentials = {
      accessToken: options.accessToken ?? crypto.randomUUID(),
      apiKey: options.apiKey ?? crypto.randomUUID(),
    }
    for (const secret of Object.values(credentials)) secrets.add(secret)
    // Replaying a long session creates many short-lived objects, for which V8's young generation would grow
    // to 128 MiB.
    if (session !== undefined) host.limitYoungGeneration?.(context.cleanups)
    const record =
      session === undefined ? undefined : [...listRecordedEvents(await readInputEvents(input, session))]
    const log = createLog(context)
    const exchange = createEmulator(
      {
        credentials,
        faults: fault,
        latencyMs: latency,
        answer: answer === undefined ? undefined : await input.readFlagValue(answer, '--answer'),
        onNewSession: (id) =>
          log(`created the session ${id}, which did not exist; --strict refuses unknown sessions`),
        record,
        isStrict: strict,
      },
      host.timers.now,
    )
    const server = await startEmulatorServer({
      port: options.port,
      host: options.host,
      exchange,
      onRequest({ method, path, status }) {
        log(`${method} ${path}`, `${status ?? 'broken off'}`)
      },
    }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_SOCKET_BAD_PORT')
        throw usageError(`--port ${options.port}: must be from 0 to 65535`)
      const [, why = error.message] = getSystemErrorMap().get(error.errno ?? 0) ?? []
      throw new CliError('file', `cannot listen on ${options.host}:${options.port}: ${why}`)
    })
    if (!isLoopbackHost(options.host))
      messages.note(`listening on ${options.host}: other machines may reach it`)
    const address = formatServerUrl(options.host, server.port)
    await output
      .write(`${JSON.stringify({ baseUrl: address, agentsUrl: address, ...credentials })}\n`)
      .catch((error: unknown) => {
        server.close()
        throw error
      })
    await tracker.during(
      { onInterrupt: () => 'no longer listening' },
      () => new Promise((resolve) => server.once('close', resolve)),
    )
  },
} satisfies CommandModule

function parseMilliseconds(value: string): number {
  const milliseconds = parseDurationMs(value, 'ms')
  if (milliseconds === undefined || milliseconds >= 2 ** 31)
    throw new Error(`not a duration ${durationExamples}; a bare number is milliseconds`)
  return milliseconds
}

/** If more bytes wait for a slow reader of stderr, the log drops lines. */
const maxUnwrittenBytes = 2 ** 20

/** The returned function escapes `text`, which a client or a file controls, and appends `end`. */
function createLog({ host, flags, secrets }: Context): (text: string, end?: string) => void {
  const stderr = host.stderr.open()
  return (text, end = '') => {
    const time = new Date(host.timers.wallTime()).toISOString()
    const line = `${time} ${toOneLine(secrets.redact(text), 300)} ${end}`.trimEnd()
    if (!flags.quiet && stderr.writableLength <= maxUnwrittenBytes) stderr.write(`${line}\n`)
  }
}
