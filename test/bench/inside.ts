import { Bench } from 'tinybench'
import { createAnswerDecoder } from '../../src/wire/gateway/answer-decoder.ts'
import { decodeBase64 } from '../../src/wire/gateway/base64.ts'
import { SendEventsBody } from '../../src/wire/sessions/send-events.ts'

const events = Array.from({ length: 20_000 }, (_, i) =>
  JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `word${i} ` } }),
)
const stream = Buffer.from(events.map((event) => `event: content_block_delta\ndata: ${event}\n\n`).join(''))
const end = Buffer.from('event: message_stop\ndata: {"type":"message_stop"}\n\n')
const image = Buffer.alloc(8 * 2 ** 20, 'parley').toString('base64')
const sent = JSON.stringify({
  events: Array.from({ length: 10_000 }, (_, i) => ({
    type: 'user.message',
    content: [{ type: 'text', text: `event ${i}` }],
  })),
})

/** Compares parley's own decoding and checking with the least possible work. */
const pairs = [
  {
    work: '20,000 stream events, decoded',
    against: '`JSON.parse` of each',
    job: () => {
      const decoder = createAnswerDecoder('text/event-stream', { text() {}, raw() {} })
      for (let i = 0; i < stream.length; i += 65536) decoder.push(stream.subarray(i, i + 65536))
      decoder.push(end)
      decoder.end()
    },
    baseline: () => {
      for (const event of events) JSON.parse(event)
    },
  },
  {
    work: '11 MiB of base64, decoded strictly',
    against: '`Buffer.from`, which skips invalid characters',
    job: () => void decodeBase64(Buffer.from(image, 'latin1')),
    baseline: () => void Buffer.from(image, 'base64'),
  },
  {
    work: '10,000 events, parsed and checked',
    against: '`JSON.parse`',
    job: () => void SendEventsBody.safeParse(JSON.parse(sent)),
    baseline: () => void JSON.parse(sent),
  },
]

/** Returns the rows that are measured in this process, with its Node version. */
export async function measureInProcess(): Promise<string[]> {
  const rows: string[] = []
  for (const { work, against, job, baseline } of pairs) {
    const bench = new Bench({ time: 500, warmupTime: 200 }).add('job', job).add('baseline', baseline)
    await bench.run()
    const [mine, theirs] = bench.tasks.map((task) => task.result?.mean ?? Number.NaN) as [number, number]
    const times = `${(mine / theirs).toFixed(2)} x (${mine.toFixed(1)} / ${theirs.toFixed(1)} ms)`
    rows.push(`| ${work} | ${against} | reported | ${times} | |`)
  }
  return rows
}
