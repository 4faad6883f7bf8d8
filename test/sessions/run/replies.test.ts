import { expect, test } from 'vitest'
import {
  bash,
  createSessionService,
  endTurn,
  running,
  type SessionScript,
  says,
  shown,
  waitsFor,
} from '../../harness/session-service.ts'

const line = ['events', 'run', 'go', '--last', '--policy', 'allow.json', '--audit', 'audit.ndjson']

/** The agent takes the task and waits for the tool use t1. */
const waits = { of: 'user.message', next: [running, bash('t1'), waitsFor('t1')] }
const allowed = { type: 'user.tool_confirmation', tool_use_id: 't1', result: 'allow' }

function open(script: SessionScript) {
  const service = createSessionService(script)
  service.write('allow.json', { rules: [], default: { decision: 'allow' } })
  /** The events of the journal about t1. */
  const journal = () =>
    service.lines('audit.ndjson').flatMap(({ toolUse, event }) => (toolUse === 't1' ? [event] : []))
  return { ...service, journal, replies: () => service.posts.slice(1) }
}

test('does not post a reply again if the connection is reset and the list shows the reply 3 s later', async () => {
  const late = { listed: 3000, streamed: 'never' } as const
  const { run, journal, replies } = open({
    posts: [
      waits,
      {
        of: allowed.type,
        fault: 'reset',
        isTaken: true,
        posted: late,
        next: [shown(running, { after: 4000 }), says('done'), endTurn],
      },
    ],
  })
  const { code, out, err } = await run(line)
  expect({ code, out, replies: replies() }, err).toEqual({ code: 0, out: 'done\n', replies: [[allowed]] })
  expect(journal()).toEqual(['decision', 'sent', 'unknown', 'accepted'])
})
