import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { addExamples, addNote } from '../help-text.ts'
import { createCaller, preview } from '../perform.ts'
import { readSettings } from '../settings.ts'
import { streamParts } from './event-stream.ts'
import { createFeed } from './feed.ts'
import { openFollower } from './follower.ts'
import { declareSessionFlags, type SessionOptions, sessionParts } from './session.ts'

interface FollowOptions extends SessionOptions {
  history?: boolean
  stay?: boolean
  ids?: boolean
}

export function declare(command: Command): void {
  declareSessionFlags(command)
  command
    .option('--history', 'also print what happened before')
    .option('--stay', 'go on after a rest, until the session is terminated')
    .option('--ids', 'print only the ids of the tool uses that wait for an answer')
  addNote(
    command,
    'It ends when the session rests: exit 0 at the end of a turn, 12 when tool uses wait for an answer',
    "('parley events confirm'), 13 when the session was terminated or is stuck, 15 at the --deadline.",
  )
  addExamples(
    command,
    'parley events follow -s sesn_1',
    'parley events follow -s sesn_1 --history --deadline 10m',
    'parley events follow -s sesn_1 --raw > events.ndjson',
  )
}

export async function run(context: Context, options: FollowOptions): Promise<void> {
  const { history: hasHistory, stay: stays, ids } = options
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  if (await preview(context, settings, endpoints.followEvents, streamParts(parts))) return
  const session = parts.params.session ?? ''
  // It only reads: a signal takes nothing away.
  delete context.progress.sent
  const feed = createFeed(context, { ids, session, stays })
  const call = createCaller(context, settings)
  const follower = await openFollower(context, call, parts, feed, { hasHistory, stays })
  try {
    await follower.follow()
  } finally {
    follower.close()
  }
}
