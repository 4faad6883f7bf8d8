import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import standaloneCode from 'ajv/dist/standalone/index.js'
import type { Plugin, RolldownOptions } from 'rolldown'
import { createLicenseFilePlugin } from './src/build/license-file.ts'
import { rootCommandEntry } from './src/cli/command-tree.ts'
import { findCompletionScript } from './src/cli/completion/scripts.ts'
import { topics } from './src/cli/topics.ts'
import { validatorOptions } from './src/content/schema/validator-options.ts'

const { ERROR, TYPE } = createRequire(import.meta.url)('undici/lib/llhttp/constants.js')

/**
 * Files of undici that parley does not need, with their replacements. A chat takes 11 % less time without the
 * first file, and 6 % less without the next four. It takes 5 % less without the two modules of Node, which
 * undici loads for a function and a number.
 */
const undiciReplacements: Record<string, string> = {
  // parley negotiates only HTTP/1.1.
  'dispatcher/client-h2.js': 'module.exports = () => { throw new Error("HTTP/2 is never negotiated") }',
  // undici falls back to its parser without SIMD if this file is missing.
  'llhttp/llhttp_simd-wasm.js': 'throw new Error("left out")',
  // Every request body is bytes. This file converts forms and blobs.
  'web/fetch/body.js': 'throw new Error("a body is always bytes")',
  // Finds common header names in lower case. If it finds nothing, undici lowercases the name itself.
  'core/tree.js': 'module.exports = { tree: { lookup: () => null } }',
  // Replaces the tables by the two values that undici computes from them.
  'llhttp/constants.js': `module.exports = ${JSON.stringify({ ERROR, TYPE })}`,
  'node:assert':
    'module.exports = (isTrue, text) => { if (!isTrue) throw Object.assign(new Error(text), { code: "ERR_ASSERTION" }) }',
  'node:http': 'module.exports = { maxHeaderSize: 16384 }',
}

/**
 * Replacements that the build has not used yet. The build fails if a replacement stays unused, because undici
 * has then renamed or removed the file.
 */
const unused = new Set(Object.keys(undiciReplacements))

const withLessOfUndici: Plugin = {
  name: 'with-less-of-undici',
  resolveId: {
    filter: { id: /^node:(assert|http)$/ },
    handler: (id, importer = '') =>
      /[\\/]undici[\\/]lib[\\/]/.test(importer) ? `/undici/lib/${id}` : undefined,
  },
  load: {
    filter: { id: /[\\/]undici[\\/]lib[\\/]/ },
    handler(id) {
      const path = id.replace(/^.*[\\/]undici[\\/]lib[\\/]/, '').replaceAll('\\', '/')
      unused.delete(path)
      return undiciReplacements[path]
    },
  },
  buildEnd(failure) {
    if (!failure && unused.size > 0) throw new Error(`undici has no ${[...unused].join(', ')}`)
  },
}

/**
 * Leaves out `node:child_process`, which commander needs only for separate executables. A usage error takes 7
 * % less time.
 */
const withoutExecutables: Plugin = {
  name: 'without-executables',
  transform: {
    filter: { id: /[\\/]commander[\\/]lib[\\/]command\.js$/ },
    handler: (code) => code.replace("require('node:child_process')", '{}'),
  },
}

/**
 * Removes imports of `process`, because the bundle would read every property of the imported object. On
 * Windows, Node ends if `process.title` is read in a console without a title (nodejs/node#58695).
 */
const withGlobalProcess: Plugin = {
  name: 'with-global-process',
  transform: {
    filter: { code: /import process from 'node:process'/ },
    handler: (code) => code.replace(/import process from 'node:process';?/, ''),
  },
}

const shells = ['bash', 'zsh', 'fish']

/** Renders the completion scripts at build time, so a run only reads and prints a finished script. */
const withScripts: Plugin = {
  name: 'with-scripts',
  load: {
    filter: { id: /src[\\/]cli[\\/]completion[\\/]scripts\.ts$/ },
    handler: () =>
      `import { readFileSync } from 'node:fs'
        import { join } from 'node:path'
        const read = (shell) => readFileSync(join(import.meta.dirname, 'completion.' + shell), 'utf8')
        export const findCompletionScript = async (shell) => ${JSON.stringify(shells)}.includes(shell) ? read(shell) : undefined`,
  },
  async generateBundle() {
    for (const shell of shells) {
      const source = (await findCompletionScript(shell, async () => rootCommandEntry)) ?? ''
      this.emitFile({ type: 'asset', fileName: `completion.${shell}`, source })
    }
  },
}

/** Compiles the schema validators at build time: a chat with --schema takes 70 ms less processor time. */
const withDrafts: Plugin = {
  name: 'with-drafts',
  load: {
    filter: { id: /src[\\/]content[\\/]schema[\\/]drafts\.ts$/ },
    handler() {
      const options = { ...validatorOptions, code: { source: true } }
      const codes = [
        ['validateDraft2020Schema', new Ajv2020(options), 'https://json-schema.org/draft/2020-12/schema'],
        ['validateDraft07Schema', new Ajv(options), 'http://json-schema.org/draft-07/schema'],
      ] as const
      const parts = codes.map(([name, validator, address]) => {
        const code = standaloneCode(validator, validator.getSchema(address))
        const own = code.replaceAll('require("ajv/dist/runtime/equal")', 'runtime')
        return `const ${name}Module = {}
          ;((module, exports) => {${own}})(${name}Module, {})
          export const ${name} = ${name}Module.exports`
      })
      return ["import runtime from 'ajv/dist/runtime/equal.js'", ...parts].join('\n')
    },
  },
}

const withTexts: Plugin = {
  name: 'with-texts',
  generateBundle() {
    for (const fileName of ['hints.txt', ...topics.map((name) => `topics/${name}.txt`)])
      this.emitFile({ type: 'asset', fileName, source: readFileSync(`src/cli/${fileName}`) })
  },
}

const sorhusNotice = 'Copyright (c) Sindre Sorhus <sindresorhus@gmail.com> (https://sindresorhus.com)'

const withThirdParties = createLicenseFilePlugin(
  // Other licenses may require more than their text: Apache-2.0 requires the NOTICE file.
  ['BSD-3-Clause', 'ISC', 'MIT'],
  [
    ['ansi-styles (MIT), in chalk', sorhusNotice],
    ['supports-color (MIT), in chalk', sorhusNotice],
    // The name has no version, because undici does not document which version of llhttp it contains.
    ['llhttp (MIT), in undici', 'Copyright Fedor Indutny, 2018.'],
  ].map(([title, notice = '']) => {
    const license = readFileSync('LICENSE', 'utf8').replace(/^Copyright .*/m, () => notice)
    return `${title}\n\n${license}`
  }),
)

/** Returns a function that tests whether a module is one of these files of `src`. */
const isOneOf = (files: string) => {
  const ends = files.split(' ').map((file) => `/src/${file}.ts`)
  return (id: string) => ends.some((end) => id.replaceAll('\\', '/').endsWith(end))
}

const config = {
  input: { main: 'src/main.ts', 'schema-worker': 'src/content/schema/worker.ts' },
  // The other files import shared code from `main.cjs`, because every run loads that file.
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  // Disables the warning about a dynamic import of a loaded chunk, and the timings after `npm ci`.
  checks: { ineffectiveDynamicImport: false, pluginTimings: false },
  plugins: [
    withLessOfUndici,
    withoutExecutables,
    withGlobalProcess,
    withScripts,
    withDrafts,
    withTexts,
    withThirdParties,
  ],
  // If SNAP is set, conf overwrites a file instead of replacing it, so the bundle ignores the variable.
  transform: { define: { 'process.env.SNAP': 'undefined' } },
  output: {
    dir: 'dist',
    format: 'cjs',
    // V8 takes two bytes for each character of a file with one character outside of Latin-1.
    charset: 'ascii',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    minify: true,
    // `require` loads Node's own modules, too: `import` would load Node's ESM loader.
    dynamicImportInCjs: false,
    // Groups of files that are always loaded together. One chunk per group saves 6 % of the time of a chat and
    // of --help.
    codeSplitting: {
      groups: [
        { name: 'start', priority: 3, test: isOneOf('main') },
        { name: 'program', priority: 2, test: isOneOf('cli/program commands/chat io/failure io/style') },
        {
          name: 'request',
          priority: 1,
          test: isOneOf('gateway/chat/chat gateway/chat/answer http/exchange http/connections'),
        },
      ],
    },
  },
} satisfies RolldownOptions

export default config
