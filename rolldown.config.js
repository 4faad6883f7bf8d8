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

// commander loads what it would run separate executables with; parley's commands are all its own.
const withoutExecutables = {
  name: 'without-executables',
  transform: {
    filter: { id: /commander[\\/]lib[\\/]command\.js$/ },
    handler: (code) => code.replace("require('node:child_process')", '{}'),
  },
}

export default defineConfig({
  input: { main: 'src/main.ts', host: 'src/host.ts' },
  platform: 'node',
  // jsonc-parser's other entry point requires its parts in a way that cannot be bundled.
  resolve: { mainFields: ['module', 'main'] },
  plugins: [withoutHttp2, withoutExecutables],
  // In a snap's terminal conf would write in place instead of replacing the file.
  transform: { define: { 'process.env.SNAP': 'undefined' } },
  output: {
    dir: 'dist',
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    minify: true,
  },
})
