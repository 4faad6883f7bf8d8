import { expect, test } from 'vitest'
import { type FormatName, formatNames, listFields } from '../harness/formats.ts'
import { readTopicBlocks } from './pages.ts'

/** Fields of release 0.1.0, which must remain until 1.0.0. */
const releasedFields: Record<FormatName, string> = {
  failure:
    'format kind exit status message retryAfter requestId sent safeToRetry retry deadline attempts pending resume body',
  report:
    'format version command exit kind retry deadline sent id model stopReason usage seconds attempts requestId session files cost sessionUsage sessionCost resume counts',
  line: 'index id hash ok text files json response model stopReason usage attempts seconds error',
  audit: 'time session toolUse type server name input event decision by rule reason',
}

test.each(formatNames)('the format "%s" keeps every field of release 0.1.0', (name) => {
  expect(listFields(name)).toEqual(expect.arrayContaining(releasedFields[name].split(' ')))
})

test('help formats names every field of each format and no other field', async () => {
  const lists = (await readTopicBlocks('formats')).map(({ text }) => text.match(/^\w+/gm))
  expect(lists).toEqual(formatNames.map(listFields))
})
