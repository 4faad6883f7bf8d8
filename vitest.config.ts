import { availableParallelism } from 'node:os'
import { defineConfig, type Plugin, type TestProjectConfiguration } from 'vitest/config'
import type { Reporter } from 'vitest/node'
import { notInShare } from './test/harness/share.ts'

let isPart = false

/** Says which tests were left out, unless by -t, and what each would need, where its name does not. */
const saySkipped: Reporter = {
  onInit(vitest) {
    isPart = vitest.config.testNamePattern !== undefined
  },
  onTestRunEnd(modules) {
    if (isPart) return
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')])
    const lines = skipped.flatMap((test) => {
      const { note } = test.result() as { note?: string | undefined }
      if (note === notInShare) return []
      return [`${test.module.relativeModuleId}: ${test.name}${note ? ` (${note})` : ''}`]
    })
    process.stdout.write(lines.map((line) => `skipped: ${line}\n`).join(''))
  },
}

/** Reporters that are named on the command line take the place of those in this file, but not of this one. */
const withSkipped: Plugin = {
  name: 'with-skipped',
  configureVitest({ vitest: { config, projects }, project }) {
    if (project === projects[0]) config.reporters.push(saySkipped)
  },
}

/** What fills memory, takes long, or tries the package as a whole: npm run test:all. */
const heavy = 'test/**/*.heavy.test.ts'

/** Which npm run test:all tries more often: test/harness/often.ts. */
const properties = 'test/**/*.property.test.ts'

/** npm run test:all counts the program's steps, from before it is loaded. */
const counted = 'test/**/*.growth.test.ts'

const faults = 'test/faults/*.test.ts'

/** Only if they are named, for whoever runs a file does not mean them: npm run proof:faults. */
const proofs: TestProjectConfiguration[] = [
  // Each row of the faults once more, without its fault.
  {
    extends: true,
    test: {
      name: 'proof',
      include: ['test/faults/!(serve.heavy|tinyproxy|carriage-return).test.ts'],
      env: { TEST_PROOF: 'yes' },
      isolate: false,
    },
  },
  // Tests of odd answers, each with the answers of a service that is well.
  {
    extends: true,
    test: {
      name: 'proof-answers',
      include: [
        'test/wire/error-bodies.test.ts',
        'test/gateway/image/{shapes,kinds,finding,hostile,links}.test.ts',
        'test/gateway/chat/stream.test.ts',
        'test/faults/carriage-return.test.ts',
        'test/sessions/follow/follow.test.ts',
      ],
      env: { TEST_PROOF: 'answers' },
      // What does not end with them does not pass.
      testTimeout: 4000,
      setupFiles: ['test/harness/leave-out.ts', 'test/harness/proof.ts'],
      isolate: false,
    },
  },
]

export default defineConfig({
  plugins: [withSkipped],
  test: {
    // More than there are cores, for much of the time goes into waiting.
    maxWorkers: 2 * availableParallelism(),
    // What hangs is stopped. No machine is so busy that it takes minutes for anything else.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 120_000 } },
    globalSetup: 'test/harness/environment.ts',
    provide: { outside: { ...process.env } },
    setupFiles: 'test/harness/leave-out.ts',
    projects: [
      // A young generation that is large is collected seldom.
      {
        extends: true,
        test: {
          name: 'heavy',
          // What computes for half a minute beside other work takes minutes on a machine that is busier.
          testTimeout: 600_000,
          include: [heavy, properties, 'test/faults/!(*.heavy|tinyproxy|carriage-return).test.ts'],
          env: { TEST_ALL: 'yes' },
          setupFiles: ['test/harness/leave-out.ts', 'test/harness/seed.ts'],
          execArgv: ['--max-semi-space-size=64'],
        },
      },
      {
        extends: true,
        test: { name: 'heavy-counted', include: [counted], setupFiles: 'test/harness/steps.ts' },
      },
      // Many processes, which a large one takes long to start.
      {
        extends: true,
        test: {
          name: 'faults',
          include: [faults],
          exclude: [heavy],
          isolate: false,
          // Most of a row's time is a wait, which costs nothing.
          maxConcurrency: 15,
          // A FIFO that nobody writes to holds one thread of a pool that has four.
          env: { UV_THREADPOOL_SIZE: '32' },
        },
      },
      // To load the program anew for each of these would cost more than most of their tests do.
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [heavy, counted, faults],
          isolate: false,
        },
      },
      ...(process.argv.some((word) => /^(--project=)?proof/.test(word)) ? proofs : []),
    ],
  },
})
