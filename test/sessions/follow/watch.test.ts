import { describe, expect, test } from 'vitest'
import { Watch } from '../../../src/sessions/following/watch.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'

/** `say1` is an agent's message of this id, `wait1:use1` a stop that waits for a tool use; others are of their type. */
function toEvent(word: string): SessionEvent {
  const [id = '', ...ids] = word.split(':')
  const kind = id.replace(/\d+$/, '')
  const kinds: Record<string, SessionEvent> = {
    say: { type: 'agent.message', content: id },
    use: { type: 'agent.tool_use', name: 'bash', input: {} },
    run: { type: 'session.status_running' },
    done: { type: 'session.status_idle', stop_reason: { type: 'end_turn' } },
    wait: { type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ids } },
    gone: { type: 'session.status_terminated' },
    ask: { type: 'user.message', content: 'go on', processed_at: '2026-01-01T00:00:00Z' },
    queued: { type: 'user.message', content: 'go on', processed_at: null },
    stop: { type: 'user.interrupt' },
    piece: { type: 'event_delta' },
    allow: { type: 'user.tool_confirmation', tool_use_id: ids[0] },
  }
  const event = kinds[kind] as SessionEvent
  // A word without a number has no id.
  return id === kind ? event : { id: id.replace('queued', 'ask'), ...event }
}

const toItems = (words: string) =>
  words
    .split(' ')
    .filter(Boolean)
    .map((word) => ({ event: toEvent(word), text: word }))

interface Script {
  past?: string
  /** What is sent before anything is followed. */
  sent?: string
  /** What the lists show, one after the other; the last one stays. `!` is a failure. */
  lists?: string[]
  /** What the streams bring, in turn; `-` is a silence, `|` the end of a stream, `!` a failure. Then nothing comes. */
  stream?: string
  stays?: boolean
  /** What is sent when an event is shown, or `''`: nothing. */
  answers?: Record<string, string>
}

/** Carries out a watch's steps, on a clock of its own; returns them, and what was shown, in their order. */
function follow({
  past = '',
  sent,
  lists = [past],
  stream = '',
  stays = false,
  answers = {},
}: Script): string[] {
  const watch = new Watch({ stays })
  for (const item of toItems(past)) watch.addPast(item)
  watch.addConnection()
  if (sent) watch.addSent(toItems(sent).map(({ event }) => event))
  const coming = stream.split(' ').filter(Boolean)
  const trace: string[] = []
  let listed = 0
  let now = 0
  for (let steps = 0; steps < 100; steps++) {
    const step = watch.next(now)
    if (step.do === 'end') return [...trace, `end at ${now}`]
    if (step.do === 'show') {
      const shown = step.items.map(({ text }) => text)
      trace.push(...shown)
      for (const { event } of toItems(answers[shown.at(-1) ?? ''] ?? '')) watch.state.add(event)
    } else if (step.do === 'list') {
      now += step.after
      const list = lists[Math.min(listed++, lists.length - 1)] ?? ''
      trace.push(step.after > 0 ? `list after ${step.after}` : 'list')
      if (list === '!') watch.addFailure()
      else watch.addList(toItems(list))
    } else if (step.do === 'connect') {
      trace.push('connect')
      watch.addConnection()
    } else {
      const word = coming.shift()
      if (word === undefined || word === '-') {
        now += step.atMost
        trace.push(`silence of ${step.atMost}`)
        watch.addSilence()
      } else if (word === '|') watch.addEnd()
      else if (word === '!') watch.addFailure()
      else for (const item of toItems(word)) watch.addStreamed(item)
    }
  }
  return [...trace, 'no end']
}

describe('a followed session, step by step', () => {
  test.each<[string, Script, string]>([
    ['that is idle', { past: 'say1 done1' }, 'list, silence of 200, end at 200'],
    [
      'that went on before the stream was open',
      { past: 'say1', lists: ['say1 say2 done1'] },
      'list, say2, done1, silence of 200, end at 200',
    ],
    [
      'at work: before the first news a list shows what was between',
      { past: 'run1', lists: ['run1', 'run1 say1 say2'], stream: 'say2 say3 done1' },
      'list, list, say1, say2, say3, done1, end at 0',
    ],
    [
      'whose stream repeats old events',
      { past: 'run1 say1', lists: ['run1 say1', 'run1 say1 done1'], stream: 'run1 say1 run1' },
      'list, silence of 30000, list, done1, silence of 0, end at 30000',
    ],
    [
      'whose list is late: what was between comes at the end',
      {
        past: 'run1',
        lists: ['run1', 'run1', 'run1', 'run1', 'run1', 'run1 say1 say2 done1'],
        stream: 'say2 done1',
      },
      'list, list, list after 250, list after 500, list after 1000, say2, list, say1, done1, end at 1750',
    ],
    [
      'whose list fails while the stream goes on',
      { past: 'run1', lists: ['run1', '!'], stream: 'say1 done1' },
      'list, list, say1, list, done1, end at 0',
    ],
    [
      'whose list fails',
      { past: 'run1', lists: ['!', 'run1 done1'] },
      'list, connect, list, done1, silence of 200, end at 200',
    ],
    [
      'whose stream ends',
      {
        past: 'run1',
        lists: ['run1', 'run1 say1', 'run1 say1 say2', 'run1 say1 say2 done1'],
        stream: 'say1 | done1',
      },
      'list, list, say1, connect, list, say2, list, done1, end at 0',
    ],
    [
      'whose stream fails',
      { past: 'run1', lists: ['run1', 'run1', 'run1 say1 done1'], stream: '! say1 done1' },
      'list, connect, list, list, say1, done1, end at 0',
    ],
    ['whose stream ends when it has stopped', { past: 'done1', stream: '|' }, 'list, end at 0'],
    [
      'whose stream is silent',
      { past: 'run1', lists: ['run1', 'run1 say1 done1'], stream: '-' },
      'list, silence of 30000, list, say1, done1, silence of 0, end at 30000',
    ],
    [
      'that was sent something, which the list shows',
      { past: 'done0', sent: 'ask1', lists: ['done0 say1 ask1 say2'], stream: 'say1 say2 done1' },
      'silence of 1000, list, say2, done1, end at 1000',
    ],
  ])('%s', (_, script, steps) => {
    expect(follow(script).join(', ')).toBe(steps)
  })
})

describe('what is printed of a session', () => {
  const printed = (script: Script) => follow(script).filter((step) => !/^(list|silence|connect)/.test(step))

  test.each<[string, Script, string]>([
    [
      'no pieces',
      { past: 'run1', lists: ['run1', 'run1 say1'], stream: 'piece say1 done1' },
      'say1 done1 end at 0',
    ],
    [
      'that is followed until it is terminated',
      { past: 'done1', stays: true, lists: ['done1 run1'], stream: 'done2 gone1' },
      'run1 done2 gone1 end at 3500',
    ],
    [
      'only what comes after what was sent',
      { past: 'done0', sent: 'ask1', stream: 'say1 ask1 run1 say2 done1' },
      'run1 say2 done1 end at 0',
    ],
    [
      'what was sent is found by what it says',
      { past: 'ask0 done0', sent: 'ask', stream: 'ask0 say1 ask7 say2 done1' },
      'say2 done1 end at 0',
    ],
    [
      'all that came, 10 s after something was sent that is never shown',
      { past: 'done0', sent: 'ask1', stream: 'say1 done1' },
      'say1 done1 end at 10750',
    ],
    [
      'what lists show that leave out what was sent',
      { past: 'done0', sent: 'ask1', lists: ['done0 say1 say2 done1'], stream: 'ask1 say1' },
      'say1 say2 done1 end at 30000',
    ],
    [
      'what comes before a message has its turn, and after',
      { past: 'run0', sent: 'ask1', stream: 'queued1 say0 done0 run1 ask1 say1 done1' },
      'say0 done0 run1 say1 done1 end at 0',
    ],
    [
      'no more, 5 s after it stopped before a message had its turn',
      { past: 'run0', sent: 'ask1', stream: 'queued1 done0' },
      'done0 end at 5450',
    ],
    [
      'the turns of two messages',
      { past: 'done0', sent: 'ask1 ask2', stream: 'ask1 say1 done1 ask2 say2 done2' },
      'say1 done1 say2 done2 end at 0',
    ],
    [
      'nothing after an interrupt, where it was idle',
      { past: 'done0', sent: 'stop1', stream: 'stop1' },
      'end at 0',
    ],
    [
      'no more, where tool uses wait',
      { past: 'run0', lists: ['run0'], stream: 'use1 wait1:use1' },
      'use1 wait1:use1 end at 3500',
    ],
    [
      'what comes of answers that were sent while it was followed',
      {
        past: 'run0',
        stream: 'use1 wait1:use1 allow1:use1 say1 done1',
        answers: { 'wait1:use1': 'allow1:use1' },
      },
      'use1 wait1:use1 allow1:use1 say1 done1 end at 5250',
    ],
    [
      'what comes of answers that were sent at the start',
      { past: 'use1 wait1:use1', stream: 'say1 done1', answers: { '': 'allow1:use1' } },
      'say1 done1 end at 3500',
    ],
  ])('%s', (_, script, expected) => {
    expect(printed(script).join(' ')).toBe(expected)
  })
})
