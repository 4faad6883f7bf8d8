import type { Command } from 'commander'
import { FileFlag, failOnEmptyFlag } from '../../argv/flags.ts'
import type { Context } from '../../context.ts'
import { createCaller } from '../../http/call.ts'
import { type DeliveryOptions, deliverEvents } from '../../sessions/sending/delivery.ts'
import { declareEventFlags } from '../../sessions/sending/event-flags.ts'
import { type EventsOptions, requireEvents } from '../../sessions/sending/request.ts'
import {
  declareSessionFlags,
  refuseSessionWord,
  type SessionOptions,
  sessionParts,
} from '../../sessions/session.ts'
import { readSettings } from '../../settings/resolve.ts'

type SendOptions = SessionOptions & EventsOptions & DeliveryOptions

export function declare(command: Command): void {
  command.argument('[message...]', 'a message; piped text comes after it, or in place of -')
  declareSessionFlags(command)
  command.addOption(
    new FileFlag('-i, --input <file>', 'events as JSON, or - for stdin: a body, a list, or one a line'),
  )
  declareEventFlags(command)
  command
    .option('--no-validate', 'send what was given, if it is JSON')
    .addOption(failOnEmptyFlag())
    .option('--ids', 'print ids only; with --follow, ids of waiting tool uses')
    .option('--follow', 'then follow the session until it stops')
}

export const examples = [
  "parley events send -s sesn_1 'Summarise the report' --follow",
  'parley events send -s sesn_1 --tool-result toolu_1=@out.txt',
  "parley events send -s sesn_1 -f diagram.png 'What is missing?'",
  'parley events send -s sesn_1 --ids < events.ndjson',
]

export async function run(context: Context, options: SendOptions, words: string[]): Promise<void> {
  refuseSessionWord(context, options, words, '; --message sends it as text')
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  const body = await requireEvents(context, options, words)
  const { markdown } = settings.values
  const access = { context, caller: createCaller(context, settings), parts }
  await deliverEvents(access, body, { ...options, markdown })
}
