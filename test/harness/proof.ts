import { beforeEach } from 'vitest'
import { isInShare, notInShare } from './share.ts'

/** Tests that pass with any answer of a service, with the reason. */
const either: [titles: RegExp, why: string][] = [
  [/^R8[56]: |^R91: |^I40: |^Markdown around an image/, 'they ask the decoder itself'],
  [
    /^--no-stream overrides|streaming is asked for|^the profile may ask for streams|^a header from stdin/,
    'they are about the request',
  ],
  [
    /^a deadline that passes while the session works|^Y215: .* is 15(?:, while the stream| of a run)|^Y217: /,
    'nothing happens in either session',
  ],
]

// With the answers of a well-behaved service, a test of odd answers must fail.
beforeEach(({ task, skip }) => {
  if (!isInShare(task.name)) skip(notInShare)
  const isEither = either.some(([titles]) => titles.test(task.name))
  Object.assign(task, { fails: !isEither })
})
