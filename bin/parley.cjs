#!/usr/bin/env node
'use strict'

// Node 4 and later must be able to parse this file. Otherwise, Node prints a syntax error instead of the
// message below.
const oldest = [20, 19]
const version = process.versions.node.split('.').map(Number)

if (version[0] < oldest[0] || (version[0] === oldest[0] && version[1] < oldest[1])) {
  const needed = `${oldest.join('.')} or newer is needed`
  process.stderr.write(`parley: Node ${process.versions.node} is too old: ${needed}\n`)
  process.exitCode = 2
} else {
  // These outputs are static: loading the cache would take longer than it saves.
  const isStatic = ['-V', '--version', 'completion'].indexOf(process.argv[2]) >= 0
  const cache = isStatic ? {} : require('./compiled-code.cjs')
  const compiledCode = isStatic ? undefined : cache.openCompiledCode()
  const program = compiledCode ? compiledCode.load('main.cjs') : require('../dist/main.cjs')
  const host = program.createProcessHost(cache.openCacheFolder)
  program.main(process.argv.slice(2), host).then((exitCode) => {
    process.exitCode = exitCode
    if (compiledCode) compiledCode.storeCode(exitCode)
  })
}
