const { chmodSync, lstatSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs')
const { isAbsolute, join } = require('node:path')
const { Script } = require('node:vm')

const isWindows = process.platform === 'win32'
const program = join(__dirname, '../dist')

/**
 * Loads the program's files as `require` does, with the code that an earlier run compiled; `undefined` where none can
 * be kept. Node's own cache has only what V8 compiles before a file runs, and most functions it compiles when called.
 */
module.exports = function openCompiledCode() {
  const folder = findFolder()
  if (folder === undefined) return undefined
  const kept = join(folder, `${process.version}-${process.arch}${program.replace(/[^\w.]/g, '-')}`)
  const loaded = new Map()

  function load(name) {
    const known = loaded.get(name)
    if (known) return known.module.exports
    const [path, file] = [`${program}/${name}`, `${kept}-${name}`]
    const source = readFileSync(path)
    const cachedData = readCode(file, source)
    const script = new Script(wrap(source), { filename: path, lineOffset: -1, cachedData })
    const isNew = !cachedData || script.cachedDataRejected
    const module = { exports: {} }
    loaded.set(name, { module, script, source, file, isNew })
    script.runInThisContext()(module.exports, requireFrom, module, path)
    return module.exports
  }

  const requireFrom = (id) => (id.startsWith('./') ? load(id.slice(2)) : require(id))

  /** All of them: where one is new, functions of the others were called that no run before had called. */
  function keep() {
    const all = [...loaded.values()]
    if (!all.some(({ isNew }) => isNew)) return
    try {
      for (const { script, source, file } of all) writeCode(file, script.createCachedData(), source)
    } catch {
      // Without it parley only starts a little later.
    }
  }

  return { load, keep }
}

const wrap = (source) => `(function (exports, require, module, __filename) {\n${source}\n})`

/**
 * V8 runs what it is given, damaged or made from another source. So the source is kept as well, and the code twice:
 * to compare them takes less time than to load what computes a checksum.
 */
function readCode(file, source) {
  try {
    const bytes = readFileSync(file)
    const size = (bytes.length - source.length) / 2
    const [code, twin] = [bytes.subarray(0, size), bytes.subarray(size, 2 * size)]
    return code.equals(twin) && bytes.subarray(2 * size).equals(source) ? code : undefined
  } catch {
    return undefined
  }
}

const writeCode = (file, code, source) =>
  writeFileSync(file, Buffer.concat([code, code, source]), { mode: 0o600 })

/** Not one that all users share, known by name. */
function findFolder() {
  const { NODE_DISABLE_COMPILE_CACHE, LOCALAPPDATA, XDG_CACHE_HOME, HOME } = process.env
  const own = isWindows ? LOCALAPPDATA : XDG_CACHE_HOME || (HOME && `${HOME}/.cache`)
  if (NODE_DISABLE_COMPILE_CACHE || !own || !isAbsolute(own)) return undefined
  const folder = join(own, 'parley')
  try {
    return isOwn(folder, own) ? folder : undefined
  } catch {
    return undefined
  }
}

/** What lies in the folder is run unseen: it is made, or has to be the user's own where nobody else can write. */
function isOwn(folder, parent) {
  const stat = lstatSync(folder, { throwIfNoEntry: false })
  if (!stat) {
    // One by one: where a folder cannot be, as in /proc, Node would try for ever to make it with its parents.
    if (!lstatSync(parent, { throwIfNoEntry: false })) mkdirSync(parent, 0o700)
    mkdirSync(folder, 0o700)
    return true
  }
  if (!stat.isDirectory()) return false
  // There a folder of the user's has no owner or mode to look at: others cannot write into what it lies in.
  if (isWindows) return true
  if (stat.uid !== process.getuid() || stat.mode & 0o022) return false
  if (stat.mode & 0o077) chmodSync(folder, 0o700)
  return true
}
