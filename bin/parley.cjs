#!/usr/bin/env node
'use strict'

// Every Node has to be able to read this file: an old one would show the syntax that it does not know.
const oldest = [20, 19]
const version = process.versions.node.split('.').map(Number)

if (version[0] < oldest[0] || (version[0] === oldest[0] && version[1] < oldest[1])) {
  const needed = `${oldest.join('.')} or newer is needed`
  process.stderr.write(`parley: Node ${process.versions.node} is too old: ${needed}\n`)
  process.exitCode = 2
} else {
  // For a text that is always the same it would take longer than it saves, and so would asking a Node that cannot.
  const isBare = ['-V', '--version', 'completion'].indexOf(process.argv[2]) >= 0
  if (version[0] >= 22 && !isBare) keepCompiledCode()

  const program = require('../dist/main.cjs')
  program.main(process.argv.slice(2), program.createProcessHost()).then((exitCode) => {
    process.exitCode = exitCode
  })
}

/** Keeps compiled code for the next run. Node's own default would be a folder that all users share, known by name. */
function keepCompiledCode() {
  const enableCompileCache = require('node:module').enableCompileCache
  const home = process.env.HOME
  const cache = process.env.XDG_CACHE_HOME || (home ? `${home}/.cache` : '')
  if (!enableCompileCache || !cache.startsWith('/')) return
  try {
    if (isOwn(`${cache}/parley`, cache)) enableCompileCache(`${cache}/parley`)
  } catch (_) {
    // Without it parley only starts a little later.
  }
}

/** What lies in the folder is run unseen: it is made, or has to be the user's own where nobody else can write. */
function isOwn(folder, parent) {
  const fs = require('node:fs')
  const stat = fs.lstatSync(folder, { throwIfNoEntry: false })
  if (!stat) {
    // One by one: where a folder cannot be, as in /proc, Node would try for ever to make it with its parents.
    if (!fs.lstatSync(parent, { throwIfNoEntry: false })) fs.mkdirSync(parent, 0o700)
    fs.mkdirSync(folder, 0o700)
    return true
  }
  if (!stat.isDirectory() || stat.uid !== process.getuid() || stat.mode & 0o022) return false
  if (stat.mode & 0o077) fs.chmodSync(folder, 0o700)
  return true
}
