import { Option } from 'commander'
import { appendFlagValue, parsePositiveCount } from '../../argv/flags.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { collectEvents, formatListQuery, listEvents } from '../../sessions/listing/event-list.ts'
import { createEventRowPrinter, printIds } from '../../sessions/listing/rows.ts'
import { createSessionClient, createSessionFlags, type SessionOptions } from '../../sessions/session.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { CommandModule } from '../command.ts'

interface ListFlags extends SessionOptions {
  type?: string[]
  order?: string
  limit?: number
  ids?: boolean
}

export default {
  parameters: () => [
    ...createSessionFlags(),
    new Option('--type <type>', 'only events of this type, repeatable').argParser(appendFlagValue),
    new Option(
      '--order <order>',
      "asc: oldest first; desc: newest first; without it, the service's order",
    ).choices(['asc', 'desc']),
    new Option(
      '--limit <n>',
      'only the newest N events (with --order asc: the oldest N), printed oldest first unless --order is desc',
    ).argParser(parsePositiveCount),
    new Option('--ids', 'print ids only'),
  ],

  notes: [
    "Types are, for example, agent.message, agent.tool_use, session.status_idle and session.error. 'parley help event-types' lists the types that clients send.",
  ],

  examples: [
    'parley events list -s sesn_1',
    'parley events list -s sesn_1 --type agent.message --order desc --limit 3',
    'parley events list -s sesn_1 --raw > events.ndjson',
  ],

  async run(context, options: ListFlags) {
    const { flags, output, messages, host, cleanups } = context
    const { caller, parts } = await createSessionClient(context, options)
    const { type, order, limit } = options
    const types = type?.flatMap((each) => each.split(','))
    const isNewest = limit !== undefined && order !== 'asc'
    const query = { types, order: isNewest ? 'desc' : order, limit }
    const text = formatListQuery(query)
    if (await caller.preview(endpoints.listEvents, { ...parts, query: text || undefined })) return
    const raw = createRawPrinter(output)
    const printRows = createEventRowPrinter(context)
    const list = listEvents(caller, parts, query)
    const isPrintedBackwards = isNewest && order === undefined
    let count = 0
    for await (const items of isPrintedBackwards ? [(await collectEvents(list)).reverse()] : list) {
      // From the second page on, the list may be long, so V8 gets less memory for new objects.
      if (count > 0 && items.length > 0) host.limitYoungGeneration?.(cleanups)
      const events = items.map(({ event }) => event)
      count += events.length
      if (options.ids) await printIds(context, events)
      else if (!flags.raw) await printRows(items)
      else {
        for (const { text } of items) raw.add(`${text}\n`)
        await raw.write()
      }
    }
    await output.flush()
    if (count === 0) messages.note(types ? `no event has the type ${types.join(' or ')}` : 'no events')
  },
} satisfies CommandModule
