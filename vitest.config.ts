import { availableParallelism } from 'node:os'
import { defineConfig, type Plugin, type TestProjectConfiguration } from 'vitest/config'
import type { Reporter } from 'vitest/node'
import { notInShare } from './test/harness/share.ts'

let isPart = false

/** Lists the skipped tests with their missing requirements, unless -t selects tests. */
const listSkipped: Reporter = {
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

/**
 * Adds the reporter in a plugin, because reporters on the command line replace those of the configuration.
 */
const withSkipped: Plugin = {
  name: 'with-skipped',
  configureVitest({ vitest: { config, projects }, project }) {
    if (project === projects[0]) config.reporters.push(listSkipped)
  },
}

/** Tests that fill memory, start a terminal or many processes, or try the whole package: npm run test:all. */
const heavy = 'test/**/*.heavy.test.ts'

/** Tests that npm run test:all runs with more cases (test/harness/property-runs.ts). */
const properties = 'test/**/*.property.test.ts'

/** Tests that count the program's steps, which starts before the program is loaded: npm run test:all. */
const counted = 'test/**/*.growth.test.ts'

const faults = 'test/faults/*.test.ts'

/**
 * Projects that run only if they are named, because somebody who runs one file does not want them: npm run
 * proof:faults.
 */
const proofs: TestProjectConfiguration[] = [
  // Repeats each row of the faults without its fault.
  {
    extends: true,
    test: {
      name: 'proof',
      include: ['test/faults/!(serve.heavy|tinyproxy|carriage-return).test.ts'],
      env: { TEST_PROOF: 'yes' },
      isolate: false,
    },
  },
  // Repeats the tests of odd answers with the answers of a well-behaved service.
  {
    extends: true,
    test: {
      name: 'proof-answers',
      include: [
        'test/wire/error-bodies.test.ts',
        'test/gateway/image/{shapes,kinds,finding,links}.test.ts',
        'test/gateway/chat/stream.test.ts',
        'test/faults/carriage-return.test.ts',
        'test/sessions/follow/follow.test.ts',
      ],
      env: { TEST_PROOF: 'answers' },
      // A test that hangs with those answers fails, as it should.
      testTimeout: 4000,
      setupFiles: ['test/harness/skip-unmet.ts', 'test/harness/proof.ts'],
      isolate: false,
    },
  },
]

export default defineConfig({
  plugins: [withSkipped],
  test: {
    // More workers than cores, because tests wait most of the time.
    maxWorkers: 2 * availableParallelism(),
    // Only a test that hangs takes this long, even on a busy machine.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 120_000 } },
    // The projects transform each file once, and a later run none.
    experimental: { fsModuleCache: true },
    globalSetup: 'test/harness/environment.ts',
    provide: { outside: { ...process.env } },
    setupFiles: 'test/harness/skip-unmet.ts',
    projects: [
      // A large young generation is collected rarely.
      {
        extends: true,
        test: {
          name: 'heavy',
          // A test that computes for half a minute can take minutes on a busy machine.
          testTimeout: 600_000,
          include: [heavy, properties, 'test/faults/!(*.heavy|tinyproxy|carriage-return).test.ts'],
          env: { TEST_ALL: 'yes' },
          setupFiles: ['test/harness/skip-unmet.ts', 'test/harness/seed.ts'],
          execArgv: ['--max-semi-space-size=64'],
        },
      },
      {
        extends: true,
        test: { name: 'heavy-counted', include: [counted], setupFiles: 'test/harness/steps.ts' },
      },
      // The rows start many processes, which is slow from a large process, so they have a project of their
      // own.
      {
        extends: true,
        test: {
          name: 'faults',
          include: [faults],
          exclude: [heavy],
          isolate: false,
          // Rows mostly wait, so running many at once costs little.
          maxConcurrency: 15,
          // A FIFO without a writer blocks one of the four threads of the default pool.
          env: { UV_THREADPOOL_SIZE: '32' },
        },
      },
      // Loading the program for each file would take longer than most of the tests.
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
