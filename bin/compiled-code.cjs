const fs = require('node:fs')
const { dirname, isAbsolute, join } = require('node:path')
const { Script } = require('node:vm')

const { platform, env } = process
const isWindows = platform === 'win32'
const program = join(__dirname, '../dist')

/** Of a file with compiled code, in bytes: a dozen times the largest that the program makes. */
const largest = 8 * 2 ** 20

/**
 * Loads the program's files as `require` does, with the code that an earlier run compiled; `undefined` if none can be
 * kept. Node's own cache holds only the functions that V8 compiles before a file runs, and it compiles most of them
 * when they are called.
 */
module.exports = function openCompiledCode() {
  const place = findPlace()
  if (!place) return undefined
  const { prefix, maker } = place
  const loaded = new Map()

  function load(name) {
    const known = loaded.get(name)
    if (known) return known.module.exports
    const [path, file] = [join(program, name), `${prefix}-${name}`]
    const source = fs.readFileSync(path)
    const origin = Buffer.concat([source, maker])
    const cachedData = readCode(file, origin)
    const script = new Script(wrap(source), { filename: path, lineOffset: -1, cachedData })
    const isNew = !cachedData || script.cachedDataRejected
    const module = { exports: {} }
    loaded.set(name, { module, script, origin, file, isNew })
    try {
      script.runInThisContext()(module.exports, requireFrom, module, path, program)
    } catch (error) {
      loaded.delete(name)
      throw error
    }
    return module.exports
  }

  const requireFrom = (id) => (id.startsWith('./') ? load(id.slice(2)) : require(id))

  /** All of them: if one is new, functions of the others were called that no run before had called. */
  function keep() {
    const all = [...loaded.values()]
    if (!all.some(({ isNew }) => isNew)) return
    try {
      if (!hasRoom(dirname(prefix))) return
      for (const { script, origin, file } of all) writeCode(file, script, origin)
    } catch {
      // Without it parley only starts a little later.
    }
  }

  return { load, keep }
}

const wrap = (source) => `(function (exports, require, module, __filename, __dirname) {\n${source}\n})`

/** What the code was compiled for: another build of the same version of Node may crash by it. */
function describeMaker() {
  const { size, mtimeMs } = fs.statSync(process.execPath)
  const { version, arch, versions } = process
  return Buffer.from(JSON.stringify([program, platform, arch, version, versions.v8, size, mtimeMs]))
}

/**
 * V8 runs any code that it is given, damaged or made from another source. So the source is kept as well, and the code
 * twice: to compare them takes less time than to load a module that computes a checksum.
 */
function readCode(file, origin) {
  try {
    const bytes = readOwn(file)
    const size = (bytes.length - origin.length) / 2
    const [code, twin] = [bytes.subarray(0, size), bytes.subarray(size, 2 * size)]
    return code.equals(twin) && bytes.subarray(2 * size).equals(origin) ? code : undefined
  } catch {
    return undefined
  }
}

/** Asks the open file for its kind and its owner: the folder may have been exchanged since it was looked at. */
function readOwn(file) {
  // A pipe would be waited for.
  const descriptor = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const stat = fs.fstatSync(descriptor)
    if (stat.isFile() && isUsers(stat) && stat.size <= largest) return fs.readFileSync(descriptor)
    throw new Error('not a file that an earlier run wrote')
  } finally {
    fs.closeSync(descriptor)
  }
}

/** What only saves time is not to take the last room that a result needs. */
function hasRoom(folder) {
  const { bavail, bsize } = fs.statfsSync(folder)
  return bavail * bsize > 64 * 2 ** 20
}

function writeCode(file, script, origin) {
  fs.rmSync(file, { force: true, recursive: true })
  // A new file, so that nothing is written through a link; first, because code that cannot be written need not be made.
  const descriptor = fs.openSync(file, 'wx', 0o600)
  try {
    const code = script.createCachedData()
    const bytes = Buffer.concat([code, code, origin])
    if (bytes.length > largest) throw new Error('it would not be read')
    fs.writeFileSync(descriptor, bytes)
  } catch (error) {
    fs.rmSync(file)
    throw error
  } finally {
    fs.closeSync(descriptor)
  }
}

/** Not one that all users share, known by name. Node's own variable turns it off. */
function findPlace() {
  const caches = env.NODE_DISABLE_COMPILE_CACHE ? undefined : findCaches()
  if (!caches || !isAbsolute(caches)) return undefined
  const folder = join(caches, 'parley')
  try {
    if (!isReady(folder, caches)) return undefined
    const prefix = join(folder, program.replace(/[^\w.]+/g, '-').slice(-150))
    return { prefix, maker: describeMaker() }
  } catch {
    return undefined
  }
}

function findCaches() {
  if (isWindows) return env.LOCALAPPDATA
  if (env.XDG_CACHE_HOME || !env.HOME) return env.XDG_CACHE_HOME
  return `${env.HOME}/${platform === 'darwin' ? 'Library/Caches' : '.cache'}`
}

/** The files in the folder are run unseen: it is made, or has to be the user's own, and nobody else may write there. */
function isReady(folder, caches) {
  const isThere = look(caches) !== undefined
  if (!isAtHome(isThere ? caches : dirname(caches))) return false
  const stat = look(folder)
  if (!stat) {
    // One by one: if a folder cannot be made, as in /proc, Node would try for ever to make it with its parents.
    if (!isThere) fs.mkdirSync(caches, 0o700)
    fs.mkdirSync(folder, 0o700)
    return true
  }
  if (!stat.isDirectory() || !isUsers(stat)) return false
  if (!isWindows && stat.mode & 0o077) fs.chmodSync(folder, 0o700)
  return true
}

/** Root is to make and change nothing in another's home, nor at the end of a link from there. */
const isAtHome = (place) =>
  isWindows || [fs.lstatSync(place), fs.statSync(place)].every(({ uid }) => uid === process.getuid())

const look = (path) => fs.lstatSync(path, { throwIfNoEntry: false })

/** Windows keeps others out of the user's folders, and shows no owner or mode. */
const isUsers = ({ uid, mode }) => isWindows || (uid === process.getuid() && (mode & 0o022) === 0)
