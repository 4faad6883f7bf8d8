import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import standaloneCode from 'ajv/dist/standalone/index.js'
import type { Plugin, RolldownOptions } from 'rolldown'
import { version } from './package.json'
import { declareThirdParties } from './src/build/third-parties.ts'
import { findScript } from './src/cli/completion/scripts.ts'
import { renderManPage } from './src/cli/man-page.ts'
import { topics } from './src/cli/topics.ts'
import { reading } from './src/content/schema/reading.ts'

const { ERROR, TYPE } = createRequire(import.meta.url)('undici/lib/llhttp/constants.js')

/**
 * The files of undici's that a run can do without, and their stand-ins. A chat takes 11 % less without the first, and 6 %
 * less without the other four together.
 */
const leftOut: Record<string, string> = {
  // Only HTTP/1.1 is ever negotiated.
  'dispatcher/client-h2.js': 'module.exports = () => { throw new Error("HTTP/2 is never negotiated") }',
  // The parser is there twice, and undici takes the plain one if this one is not there.
  'llhttp/llhttp_simd-wasm.js': 'throw new Error("left out")',
  // Every request's body is bytes; this would make them out of forms and blobs.
  'web/fetch/body.js': 'throw new Error("a body is always bytes")',
  // A shortcut to the names of common headers; without it they are put in lower case one by one.
  'core/tree.js': 'module.exports = { tree: { lookup: () => null } }',
  // As they come out of the many tables that they are computed from.
  'llhttp/constants.js': `module.exports = ${JSON.stringify({ ERROR, TYPE })}`,
}

/** A file that another version of undici does not have is not to stay in the list. */
const unused = new Set(Object.keys(leftOut))

const withLessOfUndici: Plugin = {
  name: 'with-less-of-undici',
  load: {
    filter: { id: /[\\/]undici[\\/]lib[\\/]/ },
    handler(id) {
      const path = id.replace(/^.*[\\/]undici[\\/]lib[\\/]/, '').replaceAll('\\', '/')
      unused.delete(path)
      return leftOut[path]
    },
  },
  buildEnd(failure) {
    if (!failure && unused.size > 0) throw new Error(`undici has no ${[...unused].join(', ')}`)
  },
}

/**
 * commander loads what it would run separate executables with; parley's commands are all its own. A usage error takes 7 %
 * less without it.
 */
const withoutExecutables: Plugin = {
  name: 'without-executables',
  transform: {
    filter: { id: /[\\/]commander[\\/]lib[\\/]command\.js$/ },
    handler: (code) => code.replace("require('node:child_process')", '{}'),
  },
}

/**
 * Of an imported `process` the bundle would copy each property. On Windows Node ends if one of them, the title, is
 * read and the console has none (nodejs/node#58695).
 */
const withGlobalProcess: Plugin = {
  name: 'with-global-process',
  transform: {
    filter: { code: /import process from 'node:process'/ },
    handler: (code) => code.replace(/import process from 'node:process';?/, ''),
  },
}

const shells = ['bash', 'zsh', 'fish']

/** The completion scripts are made here, so that a run only reads one and prints it. */
const withScripts: Plugin = {
  name: 'with-scripts',
  load: {
    filter: { id: /src[\\/]cli[\\/]completion[\\/]scripts\.ts$/ },
    handler: () =>
      `import { readFileSync } from 'node:fs'
        import { join } from 'node:path'
        const read = (shell) => readFileSync(join(import.meta.dirname, 'completion.' + shell), 'utf8')
        export const findScript = async (shell) => ${JSON.stringify(shells)}.includes(shell) ? read(shell) : undefined`,
  },
  async generateBundle() {
    for (const shell of shells) {
      const source = (await findScript(shell)) ?? ''
      this.emitFile({ type: 'asset', fileName: `completion.${shell}`, source })
    }
  },
}

/** What checks a schema is made here: a chat with --schema takes 70 ms less of the processor's time. */
const withDrafts: Plugin = {
  name: 'with-drafts',
  load: {
    filter: { id: /src[\\/]content[\\/]schema[\\/]drafts\.ts$/ },
    handler() {
      const options = { ...reading, code: { source: true } }
      const codes = [
        ['draft2020', new Ajv2020(options), 'https://json-schema.org/draft/2020-12/schema'],
        ['draft07', new Ajv(options), 'http://json-schema.org/draft-07/schema'],
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

const withManPage: Plugin = {
  name: 'with-man-page',
  async generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'parley.1', source: await renderManPage(version) })
  },
}

const withTopics: Plugin = {
  name: 'with-topics',
  generateBundle() {
    for (const fileName of topics.map((name) => `topics/${name}.txt`))
      this.emitFile({ type: 'asset', fileName, source: readFileSync(`src/cli/${fileName}`) })
  },
}

const sorhus = 'Copyright (c) Sindre Sorhus <sindresorhus@gmail.com> (https://sindresorhus.com)'

const withThirdParties = declareThirdParties({
  // Others may ask for more than their text: Apache-2.0 asks for the NOTICE file.
  allowed: ['BSD-3-Clause', 'ISC', 'MIT'],
  mit: readFileSync('LICENSE', 'utf8'),
  // As their repositories say, if they say it.
  notices: new Map([['sugar-high', '(No file of the package names who holds the copyright.)']]),
  inside: new Map([
    ['chalk/source/vendor/ansi-styles/index.js', ['ansi-styles', sorhus]],
    ['chalk/source/vendor/supports-color/index.js', ['supports-color', sorhus]],
    // Of which version, undici does not say.
    ['undici/lib/llhttp/llhttp-wasm.js', ['llhttp', 'Copyright Fedor Indutny, 2018.']],
  ]),
})

/** Whether a module is one of these files of `src`. */
const isOneOf = (files: string) => {
  const ends = files.split(' ').map((file) => `/src/${file}.ts`)
  return (id: string) => ends.some((end) => id.replaceAll('\\', '/').endsWith(end))
}

const config = {
  input: { main: 'src/main.ts', 'schema-worker': 'src/content/schema/worker.ts' },
  // Every run loads one file, from which the others take the parts that they need.
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  // Whoever imports one part of a chunk later than another part has it already.
  checks: { ineffectiveDynamicImport: false },
  plugins: [
    withLessOfUndici,
    withoutExecutables,
    withGlobalProcess,
    withScripts,
    withDrafts,
    withManPage,
    withTopics,
    withThirdParties,
  ],
  // In a snap's terminal conf would write in place instead of replacing the file.
  transform: { define: { 'process.env.SNAP': 'undefined' } },
  output: {
    dir: 'dist',
    cleanDir: true,
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    minify: true,
    // Node's own modules too are loaded by `require`: `import` would bring Node's loader of modules along.
    dynamicImportInCjs: false,
    // Whoever loads one of these needs all that they import: in one file each, a chat and --help take 6 % less.
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
