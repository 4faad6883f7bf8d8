import { defineConfig } from 'vitest/config'

/** The tests that speak to the module that is mutated; the names of their files come from `mutants.js`. */
export default defineConfig({
  test: {
    include: (process.env.MUTANTS_TESTS ?? '').split(' '),
    setupFiles: 'test/harness/leave-out.ts',
    testTimeout: 60_000,
    isolate: false,
  },
})
