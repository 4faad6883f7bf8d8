import { rmSync } from 'node:fs'
import { defineConfig } from 'rolldown'

rmSync(new URL('dist', import.meta.url), { recursive: true, force: true })

// Only HTTP/1.1 is ever negotiated: undici's second protocol would load node:http2 at start-up.
const withoutHttp2 = {
  name: 'without-http2',
  load: {
    filter: { id: /undici[\\/]lib[\\/]dispatcher[\\/]client-h2\.js$/ },
    handler: () => 'module.exports = () => { throw new Error("HTTP/2 is never negotiated") }',
  },
}

// undici brings its parser twice, and takes this one where it is: half the code to load, and no CPU is left out.
const withPlainParser = {
  name: 'with-plain-parser',
  load: {
    filter: { id: /llhttp_simd-wasm\.js$/ },
    handler: () => 'throw new Error("left out")',
  },
}

// commander loads what it would run separate executables with; parley's commands are all its own.
const withoutExecutables = {
  name: 'without-executables',
  transform: {
    filter: { id: /commander[\\/]lib[\\/]command\.js$/ },
    handler: (code) => code.replace("require('node:child_process')", '{}'),
  },
}

// undici only ever calls it with a claim; Node's own brings a differ and colours along.
const withSmallAssert = {
  name: 'with-small-assert',
  resolveId: {
    filter: { id: /^node:assert$/ },
    handler: (_, importer = '') => (/undici/.test(importer) ? '\0assert' : null),
  },
  load: {
    filter: { id: /^\0assert$/ },
    handler: () =>
      'module.exports = (ok, why = "undici: a claim does not hold") => { if (!ok) throw new Error(why) }',
  },
}

export default defineConfig({
  input: { main: 'src/main.ts', host: 'src/host.ts' },
  platform: 'node',
  // jsonc-parser's other entry point requires its parts in a way that cannot be bundled.
  resolve: { mainFields: ['module', 'main'] },
  plugins: [withoutHttp2, withPlainParser, withoutExecutables, withSmallAssert],
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
        { name: 'start', priority: 2, test: /src\/(errors|host|terminal\/output)\.ts$/ },
        {
          name: 'program',
          priority: 1,
          test: /src\/(program|create-context|settings\/table|commands\/(flags|chat)|terminal\/(escape|failure|style|input))\.ts$|commander/,
        },
        {
          name: 'request',
          priority: 0,
          test: /src\/commands\/(perform|chat\/ask|answer|footer|prompt|settings)\.ts$/,
        },
      ],
    },
  },
})
