import { beforeEach } from 'vitest'
import { isInProofShare, outsideShareNote } from './share.ts'

/** Tests that also pass if the service answers correctly, and the reason. */
const passWithAnyAnswer: [title: RegExp, reason: string][] = [
  [/^R8[56]: /, 'they test the decoder itself'],
  [/^--no-stream overrides|^with --stream-via |sends a header from stdin/, 'they test the request'],
  [
    /^Y215: .*events follow exits with 15 \(no response/,
    'with and without the fault, the session has no events',
  ],
]

const emulatorNote = 'the clock of this test does not see the work of the emulator, so its end is random'
const dependsOnEmulator =
  /^events .* exits with 15 if the deadline passes before the list shows the idle event$|^after the deadline, events .* prints that the agent may continue$/

// In `npm run proof:faults`, the service answers correctly. A test of a wrong answer must fail then, so this
// hook inverts its result.
beforeEach(({ task, skip }) => {
  if (!isInProofShare(task.name)) skip(outsideShareNote)
  if (dependsOnEmulator.test(task.name)) skip(emulatorNote)
  const passes = passWithAnyAnswer.some(([titles]) => titles.test(task.name))
  Object.assign(task, { fails: !passes })
})
