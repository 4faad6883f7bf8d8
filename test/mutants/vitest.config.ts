import { defineConfig, type Plugin } from 'vitest/config'

/**
 * A schema is built once, by the first test that needs it: only this one would try a change of it. So each test builds
 * its own.
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

/** The tests that speak to the module that is mutated; the names of their files come from `mutants.js`. */
export default defineConfig({
  plugins: [buildAnew],
  test: {
    include: (process.env.MUTANTS_TESTS ?? '').split(' '),
    globalSetup: 'test/harness/environment.ts',
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
