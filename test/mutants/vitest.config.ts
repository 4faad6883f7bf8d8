import { defineConfig } from 'vitest/config'

/** The tests that speak to the module that is mutated; the names of their files come from `mutants.js`. */
export default defineConfig({
  test: {
    include: (process.env.MUTANTS_TESTS ?? '').split(' '),
    setupFiles: ['test/mutants/load.ts', 'test/harness/leave-out.ts'],
    // Stryker's own goes first: it says which change the modules are loaded with.
    sequence: { setupFiles: 'list' },
    testTimeout: 60_000,
    isolate: false,
    // Stryker's set-up lies below node_modules. As an external module it would be loaded once, for the first file: the
    // tests of the others would count for nothing.
    server: { deps: { inline: [/stryker-setup/] } },
  },
})
