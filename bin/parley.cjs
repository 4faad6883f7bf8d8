#!/usr/bin/env node

/** Keeps compiled code for the next run. Node's own default would be a folder that all users share, known by name. */
function keepCompiledCode() {
  const { enableCompileCache } = require('node:module')
  const { XDG_CACHE_HOME, HOME } = process.env
  const cache = XDG_CACHE_HOME || (HOME && `${HOME}/.cache`)
  if (!enableCompileCache || !cache?.startsWith('/')) return
  try {
    if (isOwn(`${cache}/parley`, cache)) enableCompileCache(`${cache}/parley`)
  } catch {
    // Without it parley only starts a little later.
  }
}

/** What lies in the folder is run unseen: it is made, or has to be the user's own where nobody else can write. */
function isOwn(folder, parent) {
  const { chmodSync, lstatSync, mkdirSync } = require('node:fs')
  const stat = lstatSync(folder, { throwIfNoEntry: false })
  if (!stat) {
    // One by one: where a folder cannot be, as in /proc, Node would try for ever to make it with its parents.
    if (!lstatSync(parent, { throwIfNoEntry: false })) mkdirSync(parent, 0o700)
    mkdirSync(folder, 0o700)
    return true
  }
  if (!stat.isDirectory() || stat.uid !== process.getuid() || stat.mode & 0o022) return false
  if (stat.mode & 0o077) chmodSync(folder, 0o700)
  return true
}

// For a text that is always the same it would take longer than it saves, and so would asking a Node that cannot.
const isBare = ['-V', '--version', 'completion'].includes(process.argv[2])
if (Number.parseInt(process.versions.node, 10) >= 22 && !isBare) keepCompiledCode()

const { createProcessHost, main } = require('../dist/main.cjs')

main(process.argv.slice(2), createProcessHost()).then((exitCode) => {
  process.exitCode = exitCode
})
