import { availableParallelism } from 'node:os'
import { defineConfig, type Plugin, type TestProjectConfiguration } from 'vitest/config'
import type { Reporter } from 'vitest/node'
import { outsideShareNote } from './test/harness/share.ts'

let isPart = false

/** Prints the skipped tests with their missing requirements, except if -t selects tests. */
const listSkipped: Reporter = {
  onInit(vitest) {
    isPart = vitest.config.testNamePattern !== undefined
  },
  onTestRunEnd(modules) {
    if (isPart) return
    const skipped = modules.flatMap((module) => [...module.children.allTests('skipped')])
    const lines = skipped.flatMap((test) => {
      const { note } = test.result() as { note?: string | undefined }
      if (note === outsideShareNote) return []
      return [`${test.module.relativeModuleId}: ${test.name}${note ? ` (${note})` : ''}`]
    })
    process.stdout.write(lines.map((line) => `skipped: ${line}\n`).join(''))
  },
}

/** Adds the reporter in a plugin, because `--reporter` would replace a reporter of the configuration. */
const withSkipped: Plugin = {
  name: 'with-skipped',
  configureVitest({ vitest: { config, projects }, project }) {
    if (project === projects[0]) config.reporters.push(listSkipped)
  },
}

/**
 * Tests that fill memory, start a terminal or many processes, or install the package. Only test:all runs
 * them.
 */
const heavy = 'test/**/*.heavy.test.ts'

/** Tests that test:all runs with more cases (test/harness/property-runs.ts). */
const properties = 'test/**/*.property.test.ts'

/** Tests that count steps (test/harness/steps.ts). Only test:all runs them. */
const growth = 'test/**/*.growth.test.ts'

const faults = 'test/faults/*.test.ts'

/** Projects of `npm run proof:faults`. They exist only if they are named, so a run of one file omits them. */
const proofs: TestProjectConfiguration[] = [
  // Repeats each row of test/faults without its fault.
  {
    extends: true,
    test: {
      name: 'proof',
      include: ['test/faults/!(serve.heavy|carriage-return).test.ts'],
      env: { TEST_PROOF: 'yes' },
      isolate: false,
    },
  },
  // Repeats the tests of odd answers with correct answers.
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
      // A test that waits for a fault hangs without the fault. It must fail, so it soon times out.
      testTimeout: 4000,
      setupFiles: ['test/harness/skip-unmet.ts', 'test/harness/proof.ts'],
      isolate: false,
    },
  },
]

export default defineConfig({
  plugins: [withSkipped],
  test: {
    // Tests wait most of the time, so there are more workers than cores.
    maxWorkers: 2 * availableParallelism(),
    // Even on a busy machine, only a test that hangs takes this long.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 120_000 } },
    // Caches transformed files for all projects and for later runs.
    experimental: { fsModuleCache: true },
    globalSetup: 'test/harness/environment.ts',
    provide: { outside: { ...process.env } },
    setupFiles: 'test/harness/skip-unmet.ts',
    projects: [
      {
        extends: true,
        test: {
          name: 'heavy',
          // A test that computes for half a minute can take minutes on a busy machine.
          testTimeout: 600_000,
          include: [heavy, properties, 'test/faults/!(*.heavy|carriage-return).test.ts'],
          env: { TEST_ALL: 'yes' },
          setupFiles: ['test/harness/skip-unmet.ts', 'test/harness/seed.ts'],
          // With a large young generation, V8 collects garbage less often, so tests with much data are
          // faster.
          execArgv: ['--max-semi-space-size=64'],
        },
      },
      {
        extends: true,
        test: { name: 'heavy-growth', include: [growth], setupFiles: 'test/harness/steps.ts' },
      },
      // Rows start many processes. Starting a process takes longer from a large process, so rows have their
      // own project.
      {
        extends: true,
        test: {
          name: 'faults',
          include: [faults],
          exclude: [heavy],
          isolate: false,
          // Rows wait most of the time, so many run at once.
          maxConcurrency: 15,
          // A FIFO without a writer blocks a thread of the pool, which has only four by default.
          env: { UV_THREADPOOL_SIZE: '32' },
        },
      },
      // Loading the program takes longer than most tests, so the files share one copy (isolate: false).
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [heavy, growth, faults],
          isolate: false,
        },
      },
      ...(process.argv.some((word) => /^(--project=)?proof/.test(word)) ? proofs : []),
    ],
  },
})
