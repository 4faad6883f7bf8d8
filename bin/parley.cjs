#!/usr/bin/env node
const { mkdirSync } = require('node:fs')
const nodeModule = require('node:module')

// Node's own default would be a folder that every user of the machine shares, under a name that is known.
const { XDG_CACHE_HOME, HOME } = process.env
const cache = XDG_CACHE_HOME || (HOME && `${HOME}/.cache`)
if (nodeModule.enableCompileCache && cache?.startsWith('/')) {
  try {
    mkdirSync(`${cache}/parley`, { recursive: true, mode: 0o700 })
    nodeModule.enableCompileCache(`${cache}/parley`)
  } catch {
    // Without a cache parley only starts a little later.
  }
}

const { main } = require('../dist/main.cjs')
const { createProcessHost } = require('../dist/host.cjs')

main(process.argv.slice(2), createProcessHost()).then((exitCode) => {
  process.exitCode = exitCode
})
