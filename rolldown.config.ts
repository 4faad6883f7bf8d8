import { createRequire } from 'node:module'
import type { Plugin, RolldownOptions } from 'rolldown'
import { version } from './package.json'
import { findScript } from './src/cli/completion/scripts.ts'
import { renderManPage } from './src/cli/man-page.ts'
import { declareThirdParties } from './src/third-parties/declaration.ts'

const { ERROR, TYPE } = createRequire(import.meta.url)('undici/lib/llhttp/constants.js')

/** What of undici's own files a run can do without, and what takes its place: each kilobyte delays the start. */
const leftOut: Record<string, string> = {
  // Only HTTP/1.1 is ever negotiated.
  'dispatcher/client-h2.js': 'module.exports = () => { throw new Error("HTTP/2 is never negotiated") }',
  // The parser is there twice, and undici takes the plain one where this one is not; no CPU is left out.
  'llhttp/llhttp_simd-wasm.js': 'throw new Error("left out")',
  // Every request's body is bytes; this would make them out of forms and blobs.
  'web/fetch/body.js': 'throw new Error("a body is always bytes")',
  // A shortcut to the names of common headers; without it they are put in lower case one by one.
  'core/tree.js': 'module.exports = { tree: { lookup: () => null } }',
  // As they come out of the many tables that they are computed from.
  'llhttp/constants.js': `module.exports = ${JSON.stringify({ ERROR, TYPE })}`,
}

/** What undici asks of these modules of Node's is little, and they bring much along. */
const small: Record<string, string> = {
  // Node's comes with a differ and colours.
  'node:assert':
    'module.exports = (ok, why = "undici: a claim does not hold") => { if (!ok) throw new Error(why) }',
  // The class is for bodies that are a server's requests; the limit is Node's own, unless a flag sets another.
  'node:http': `module.exports = {
    IncomingMessage: class {},
    get maxHeaderSize() {
      const flags = [process.env.NODE_OPTIONS, ...process.execArgv].join()
      return flags.includes('max-http-header-size') ? require('node:http').maxHeaderSize : 16384
    },
  }`,
}

/** What another version of undici has no longer is not to be kept in this list. */
const unused = new Set(Object.keys(leftOut))

const withLessOfUndici: Plugin = {
  name: 'with-less-of-undici',
  resolveId: {
    filter: { id: /^node:(assert|http)$/ },
    handler: (id, importer = '') => (/[\\/]undici[\\/]/.test(importer) ? `\0small ${id}` : null),
  },
  load: {
    filter: { id: [/^\0small /, /[\\/]undici[\\/]lib[\\/]/] },
    handler(id) {
      const path = id.replace(/^.*[\\/]undici[\\/]lib[\\/]/, '').replaceAll('\\', '/')
      unused.delete(path)
      return small[id.replace('\0small ', '')] ?? leftOut[path]
    },
  },
  buildEnd(failure) {
    if (!failure && unused.size > 0) throw new Error(`undici has no ${[...unused].join(', ')}`)
  },
}

/**
 * Of an imported `process` the bundle would copy each property. On Windows Node ends where one of them, the title, is
 * read and the console has none (nodejs/node#58695).
 */
const withGlobalProcess: Plugin = {
  name: 'with-global-process',
  transform: {
    filter: { code: /import process from 'node:process'/ },
    handler: (code) => code.replace(/import process from 'node:process';?/, ''),
  },
}

/** commander loads what it would run separate executables with; parley's commands are all its own. */
const withoutExecutables: Plugin = {
  name: 'without-executables',
  transform: {
    filter: { id: /[\\/]commander[\\/]lib[\\/]command\.js$/ },
    handler: (code) => code.replace("require('node:child_process')", '{}'),
  },
}

/** V8 compiles a function in parentheses at once instead of reading it twice, but only where it is no arrow function. */
const withEagerModules: Plugin = {
  name: 'with-eager-modules',
  renderChunk: (code) => code.replace(/\(\(\((exports(, module)?)\) => \{/g, '((function ($1) {'),
}

/** The completion scripts are made here, so that a run only prints one. */
const withScripts: Plugin = {
  name: 'with-scripts',
  load: {
    filter: { id: /src[\\/]cli[\\/]completion[\\/]scripts\.ts$/ },
    async handler() {
      const shells = ['bash', 'zsh', 'fish']
      const scripts = await Promise.all(shells.map(async (shell) => [shell, await findScript(shell)]))
      return `const scripts = new Map(${JSON.stringify(scripts)})
        export const findScript = async (shell) => scripts.get(shell)`
    },
  },
}

const withManPage: Plugin = {
  name: 'with-man-page',
  async generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'parley.1', source: await renderManPage(version) })
  },
}

const sorhus = 'Copyright (c) Sindre Sorhus <sindresorhus@gmail.com> (https://sindresorhus.com)'

const withThirdParties = declareThirdParties({
  // Others may ask for more than their text: Apache-2.0 asks for the NOTICE file.
  allowed: ['BSD-3-Clause', 'ISC', 'MIT'],
  own: /^\0small /,
  // As their repositories say, where they say it.
  notices: new Map([['sugar-high', '(No file of the package names who holds the copyright.)']]),
  inside: new Map([
    ['chalk/source/vendor/ansi-styles/index.js', ['ansi-styles', sorhus]],
    ['chalk/source/vendor/supports-color/index.js', ['supports-color', sorhus]],
    // Of which version, undici does not say.
    ['undici/lib/llhttp/llhttp-wasm.js', ['llhttp', 'Copyright Fedor Indutny, 2018.']],
  ]),
})

/** Whether a module is one of these files of `src`, or another that is meant. */
const isOneOf = (files: string, other = /^$/) => {
  const ends = files.split(' ').map((file) => `/src/${file}.ts`)
  return (id: string) => other.test(id) || ends.some((end) => id.replaceAll('\\', '/').endsWith(end))
}

const config = {
  input: { main: 'src/main.ts', 'schema-worker': 'src/content/schema/worker.ts' },
  // What every run loads is one file: others take from it what they need.
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  // What sends is one chunk, and who imports a part of it later than another part has it already.
  checks: { ineffectiveDynamicImport: false },
  plugins: [
    withLessOfUndici,
    withGlobalProcess,
    withoutExecutables,
    withEagerModules,
    withScripts,
    withManPage,
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
    // One other character, and V8 holds the whole file in two bytes for each.
    charset: 'ascii',
    // Node's own modules too are loaded by `require`: `import` would bring Node's loader of modules along.
    dynamicImportInCjs: false,
    // Each file costs a fraction of a millisecond: every group here is loaded as a whole by whoever needs it.
    codeSplitting: {
      groups: [
        {
          name: 'start',
          priority: 3,
          test: isOneOf(
            'main host errors secrets fate summary argv/bare-flags report io/output',
            /package\.json$/,
          ),
        },
        {
          name: 'program',
          priority: 2,
          test: isOneOf(
            'argv/spelling cli/program cli/create-context settings/table commands/chat wire/gateway/models io/escape io/failure io/style io/input',
            /commander/,
          ),
        },
        {
          name: 'request',
          priority: 1,
          test: isOneOf(
            'http/call settings/read-settings gateway/chat/chat content/footer content/prompt http/attempts http/exchange http/connections wire/sse wire/received-json',
          ),
        },
        { name: 'answer', priority: 0, test: isOneOf('gateway/chat/answer') },
        {
          name: 'events',
          priority: 0,
          test: isOneOf(
            'commands/events/send commands/events/confirm commands/events/list commands/events/follow',
          ),
        },
      ],
    },
  },
} satisfies RolldownOptions

export default config
