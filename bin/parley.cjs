#!/usr/bin/env node

/** Keeps compiled code for the next run. Node's own default would be a folder that all users share, known by name. */
function keepCompiledCode() {
  const { enableCompileCache } = require('node:module')
  const { XDG_CACHE_HOME, HOME } = process.env
  const cache = XDG_CACHE_HOME || (HOME && `${HOME}/.cache`)
  if (!enableCompileCache || !cache?.startsWith('/')) return
  try {
    require('node:fs').mkdirSync(`${cache}/parley`, { recursive: true, mode: 0o700 })
    enableCompileCache(`${cache}/parley`)
  } catch {
    // Without it parley only starts a little later.
  }
}

// For a bare number it would take longer than it saves, and so would asking a Node that cannot.
if (Number.parseInt(process.versions.node, 10) >= 22 && process.argv[2] !== '--version') keepCompiledCode()

const { createProcessHost, main } = require('../dist/main.cjs')

main(process.argv.slice(2), createProcessHost()).then((exitCode) => {
  process.exitCode = exitCode
})
