import type { BasicContext, Host, SharedFlags } from './basic-context.ts'
import type { CliError } from './errors.ts'
import { InputReader } from './io/input.ts'
import { createMessagePrinter, type MessagePrinter } from './io/messages.ts'
import { createOutput, type Output } from './io/output.ts'
import type { WorkTracker } from './work-tracker.ts'

export interface RunContext extends Omit<BasicContext, 'host' | 'flags'> {
  tracker: WorkTracker
}

export interface Context extends BasicContext, RunContext {
  input: InputReader
  output: Output
  messages: MessagePrinter
}

export async function createContext(host: Host, flags: SharedFlags, run: RunContext): Promise<Context> {
  const context = { ...run, host, flags }
  const messages = await createMessagePrinter(context)
  const input = new InputReader(context, messages.note)
  return { ...context, input, output: createOutput(host.stdout, run.deadline), messages }
}

export interface CommandResult {
  failure?: CliError | undefined
  /** Synchronous. Called after parley has written the report. Not called if writing the report failed. */
  lastStep?: (() => void) | undefined
}
