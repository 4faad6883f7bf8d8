#!/usr/bin/env node
const { main } = require('../dist/main.cjs')
const { createProcessHost } = require('../dist/host.cjs')

main(process.argv.slice(2), createProcessHost()).then((exitCode) => {
  process.exitCode = exitCode
})
