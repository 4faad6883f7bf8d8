import { defineConfig, type Plugin } from 'vitest/config'

/**
 * Builds schemas again for each test. Otherwise only the first test that needs a schema would detect changes
 * of it.
 */
const buildAnew: Plugin = {
  name: 'build-anew',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('/src/wire/zod.ts')) return undefined
    const anew = code.replace('schema ??= build()', 'schema = build()')
    if (anew === code) throw new Error(`${id} keeps a schema in another way`)
    return anew
  },
}

/** Configuration for the tests of one mutated module. `mutants.js` passes the names of their files. */
export default defineConfig({
  plugins: [buildAnew],
  test: {
    include: (process.env.MUTANTS_TESTS ?? '').split(' '),
    globalSetup: 'test/harness/environment.ts',
    setupFiles: ['test/mutants/load.ts', 'test/harness/skip-unmet.ts'],
    // Stryker's setup file runs first, because it selects the mutant that the modules are loaded with.
    sequence: { setupFiles: 'list' },
    testTimeout: 60_000,
    isolate: false,
    // Stryker's setup file is in node_modules. As an external module it would be loaded only once. Then only
    // the tests of the first file would count.
    server: { deps: { inline: [/stryker-setup/] } },
  },
})
