import { defineConfig, type Plugin } from 'vitest/config'

/**
 * Builds schemas at each use. Otherwise only the first test that uses a schema would count as a test of it.
 */
const buildAnew: Plugin = {
  name: 'build-anew',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('/src/wire/zod.ts')) return undefined
    const anew = code.replace('schema ??= build()', 'schema = build()')
    if (anew === code) throw new Error(`${id} has no 'schema ??= build()': change mutants/vitest.config.ts`)
    return anew
  },
}

/** Configuration for the tests of one mutated module. `mutants.js` passes their paths in MUTANTS_TESTS. */
export default defineConfig({
  plugins: [buildAnew],
  test: {
    include: (process.env.MUTANTS_TESTS ?? '').split(' '),
    globalSetup: 'test/harness/environment.ts',
    setupFiles: ['test/mutants/load.ts', 'test/harness/skip-unmet.ts'],
    // Stryker's setup file selects the mutant, so it must run before load.ts loads the modules.
    sequence: { setupFiles: 'list' },
    testTimeout: 60_000,
    isolate: false,
    // Stryker's setup file is in node_modules, and vitest loads external modules only once. Inlined, it runs
    // for each test file; otherwise only the tests of the first file would count.
    server: { deps: { inline: [/stryker-setup/] } },
  },
})
