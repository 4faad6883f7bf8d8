import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { defineConfig } from 'rolldown'

rmSync(new URL('dist', import.meta.url), { recursive: true, force: true })

const { ERROR, TYPE } = createRequire(import.meta.url)('undici/lib/llhttp/constants.js')

/**
 * What of the libraries' own files is left out, for every kilobyte that is loaded delays a run: a file's path and what
 * takes its place.
 */
const leftOut = {
  // Only HTTP/1.1 is ever negotiated.
  'undici/lib/dispatcher/client-h2.js':
    'module.exports = () => { throw new Error("HTTP/2 is never negotiated") }',
  // The parser is there twice, and undici takes the plain one where this one is not; no CPU is left out.
  'undici/lib/llhttp/llhttp_simd-wasm.js': 'throw new Error("left out")',
  // Every request's body is bytes; this would make them out of forms and blobs.
  'undici/lib/web/fetch/body.js': 'throw new Error("a body is always bytes")',
  // A shortcut to the names of common headers; without it they are put in lower case one by one.
  'undici/lib/core/tree.js': 'module.exports = { tree: { lookup: () => null } }',
  // As they come out of the many tables that they are computed from.
  'undici/lib/llhttp/constants.js': `module.exports = ${JSON.stringify({ ERROR, TYPE })}`,
}

const withLessOfLibraries = {
  name: 'with-less-of-libraries',
  load: {
    filter: { id: Object.keys(leftOut).map((path) => new RegExp(`${path.replaceAll('/', '[\\\\/]')}$`)) },
    handler: (id) => Object.entries(leftOut).find(([path]) => id.replaceAll('\\', '/').endsWith(path))?.[1],
  },
}

/** What undici asks of Node's own modules is little, and they bring much along. */
const small = {
  // Node's comes with a differ and colours.
  'node:assert':
    'module.exports = (ok, why = "undici: a claim does not hold") => { if (!ok) throw new Error(why) }',
  // The one is for bodies that are a server's requests, the other for clients that set no limit of their own.
  'node:http': 'module.exports = { IncomingMessage: class {}, maxHeaderSize: 16384 }',
}

const withSmallModules = {
  name: 'with-small-modules',
  resolveId: {
    filter: { id: /^node:(assert|http)$/ },
    handler: (id, importer = '') => (/undici/.test(importer) ? `\0small ${id}` : null),
  },
  load: { filter: { id: /^\0small / }, handler: (id) => small[id.slice('\0small '.length)] },
}

// commander loads what it would run separate executables with; parley's commands are all its own.
const withoutExecutables = {
  name: 'without-executables',
  transform: {
    filter: { id: /commander[\\/]lib[\\/]command\.js$/ },
    handler: (code) => code.replace("require('node:child_process')", '{}'),
  },
}

// V8 compiles a function in parentheses at once instead of reading it twice, but only where it is no arrow function.
const withEagerModules = {
  name: 'with-eager-modules',
  renderChunk: (code) => code.replace(/\(\(\((exports(, module)?)\) => \{/g, '((function ($1) {'),
}

export default defineConfig({
  input: { main: 'src/main.ts' },
  // What every run loads is one file: others take from it what they need.
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  // jsonc-parser's other entry point requires its parts in a way that cannot be bundled.
  resolve: { mainFields: ['module', 'main'] },
  plugins: [withLessOfLibraries, withSmallModules, withoutExecutables, withEagerModules],
  // In a snap's terminal conf would write in place instead of replacing the file.
  transform: { define: { 'process.env.SNAP': 'undefined' } },
  output: {
    dir: 'dist',
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    minify: true,
    // Each file costs a fraction of a millisecond: what every run loads, and what every request loads, is one each.
    codeSplitting: {
      groups: [
        { name: 'start', priority: 2, test: /src\/(main|host|errors|terminal\/output)\.ts$|package\.json$/ },
        {
          name: 'program',
          priority: 1,
          test: /src\/(program|create-context|settings\/table|commands\/(flags|chat)|terminal\/(escape|failure|style|input))\.ts$|commander/,
        },
        {
          name: 'request',
          priority: 0,
          test: /src\/(commands\/(perform|chat\/ask|footer|prompt|settings)|client\/(send|exchange))\.ts$/,
        },
        { name: 'answer', priority: 0, test: /src\/commands\/answer\.ts$/ },
      ],
    },
  },
})
