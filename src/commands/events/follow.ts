import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { createCaller, preview } from '../perform.ts'
import { readSettings } from '../settings.ts'
import { streamParts } from './event-stream.ts'
import { openFollower } from './follower.ts'
import { declareSessionFlags, type SessionOptions, sessionParts } from './session.ts'

interface FollowOptions extends SessionOptions {
  history?: boolean
  ids?: boolean
}

export function declare(command: Command): void {
  declareSessionFlags(command)
  command
    .option('--history', 'also print what happened before')
    .option('--ids', 'print only the ids of the tool uses that wait for an answer')
    .addHelpText(
      'after',
      '\nIt ends with exit 0 at the end of a turn, 12 when tool uses wait for an answer, 13 otherwise.\n',
    )
}

export async function run(context: Context, options: FollowOptions): Promise<number> {
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  if (await preview(context, settings, endpoints.followEvents, streamParts(parts))) return 0
  const follower = await openFollower(context, createCaller(context, settings), parts)
  return follower.follow({ hasHistory: options.history ?? false, ids: options.ids ?? false })
}
