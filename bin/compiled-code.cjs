const fs = require('node:fs')
const { dirname, isAbsolute } = require('node:path')
const { Script } = require('node:vm')

const { platform } = process
const isWindows = platform === 'win32'
// `join` would make V8 compile Node's code for paths, which takes 2 % of the time of a usage error.
const program = `${dirname(__dirname)}/dist`

/**
 * Loads the program's files like `require`, with code that an earlier run compiled. Returns `undefined` if no
 * code can be stored. Node's own cache would lack most functions, because V8 compiles them only when they are
 * called.
 */
function openCompiledCode() {
  const cache = findCodeFolder()
  if (!cache) return undefined
  const { prefix, compiler } = cache
  const loaded = new Map()

  function load(name) {
    const known = loaded.get(name)
    if (known) return known.module.exports
    const [path, file] = [`${program}/${name}`, `${prefix}-${name}`]
    const source = fs.readFileSync(path)
    const origin = Buffer.concat([source, compiler])
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

  /**
   * Stores all files if one is new, or if no earlier run ended with this exit code. The first run with an
   * exit code has compiled functions that are not stored yet. Without these functions, a usage error after
   * `--help` takes 6 % more time. An empty file marks each exit code of this version. The name of the empty
   * file contains the total length of the files, because another version has another length.
   */
  function storeCode(exitCode) {
    const all = [...loaded.values()]
    const marker = `${prefix}-${exitCode}-${all.reduce((sum, { origin }) => sum + origin.length, 0)}`
    if (!all.some(({ isNew }) => isNew) && fs.existsSync(marker)) return
    try {
      if (!hasRoom(dirname(prefix))) return
      for (const { script, origin, file } of all) writeCode(file, script, origin)
      fs.writeFileSync(marker, '', { flag: 'wx', mode: 0o600 })
    } catch {
      // A failed write is ignored, because parley only starts more slowly without the cache.
    }
  }

  return { load, storeCode }
}

module.exports = { openCompiledCode, openCacheFolder }

const head = Buffer.from('(function (exports, require, module, __filename, __dirname) {\n')
const tail = Buffer.from('\n})')

/** Joins the bytes, because V8 copies a string that consists of several strings before it reads it. */
const wrap = (source) => Buffer.concat([head, source, tail]).toString()

/** Describes this build of Node, because code of another build may crash, even with the same version. */
function describeCompiler() {
  const { size, mtimeMs } = fs.statSync(process.execPath)
  const { version, arch, versions } = process
  return Buffer.from(JSON.stringify([program, platform, arch, version, versions.v8, size, mtimeMs]))
}

/**
 * V8 does not detect code that is damaged or was compiled from another source. So the file contains the code
 * twice, and then its source and compiler (`origin`). Comparing two copies is faster than loading a module
 * that computes a checksum.
 */
function readCode(file, origin) {
  try {
    const bytes = readOwnedFile(file)
    const size = (bytes.length - origin.length) / 2
    const [code, copy] = [bytes.subarray(0, size), bytes.subarray(size, 2 * size)]
    return code.equals(copy) && bytes.subarray(2 * size).equals(origin) ? code : undefined
  } catch {
    return undefined
  }
}

/** Checks the open file, because the folder may have been replaced since it was checked. */
function readOwnedFile(file) {
  // Opening a FIFO would block, so O_NONBLOCK is set.
  const descriptor = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const stat = fs.fstatSync(descriptor)
    if (stat.isFile() && isProtected(stat)) return fs.readFileSync(descriptor)
    throw new Error('not a file that an earlier run wrote')
  } finally {
    fs.closeSync(descriptor)
  }
}

/** The cache must not fill the disk, because a result may need the space. */
function hasRoom(folder) {
  const { bavail, bsize } = fs.statfsSync(folder)
  return bavail * bsize > 64 * 2 ** 20
}

function writeCode(file, script, origin) {
  fs.rmSync(file, { force: true, recursive: true })
  // The flag `wx` creates a new file, so parley never writes through a link. The file is opened first,
  // because producing code that cannot be written would waste time.
  const descriptor = fs.openSync(file, 'wx', 0o600)
  try {
    const code = script.createCachedData()
    fs.writeFileSync(descriptor, Buffer.concat([code, code, origin]))
  } catch (error) {
    fs.rmSync(file)
    throw error
  } finally {
    fs.closeSync(descriptor)
  }
}

/**
 * Returns `undefined` if the user has no safe folder for caches. A folder that other users can write could
 * contain hostile code. NODE_DISABLE_COMPILE_CACHE turns the cache off, as in Node.
 */
function findCodeFolder() {
  try {
    const { env } = process
    const folder = env.NODE_DISABLE_COMPILE_CACHE ? undefined : openCacheFolder(env, isProtected)
    if (!folder) return undefined
    // The name contains the version of Node, because each version compiles its own code.
    const owner = `${program.replace(/[^\w.]+/g, '-').slice(-150)}-${process.version}-${process.arch}`
    return { prefix: `${folder}/${owner}`, compiler: describeCompiler() }
  } catch {
    return undefined
  }
}

/**
 * Returns parley's folder in the user's cache folder, and creates a missing folder. Returns `undefined` if the
 * cache folder belongs to another user, or if `isSafe` refuses parley's folder. `isSafe` gets the mode that the
 * folder has before parley changes it to 0700. Throws the errors of the file system.
 */
function openCacheFolder(env, isSafe = isOwnedByUser) {
  const caches = findCachesFolder(env)
  if (!caches || !isAbsolute(caches)) return undefined
  const folder = `${caches}/parley`
  const missing = [caches, folder].filter((path) => !fs.lstatSync(path, { throwIfNoEntry: false }))
  if (!ownsPathAndTarget(missing.includes(caches) ? dirname(caches) : caches)) return undefined
  // Creates each folder separately, because a recursive mkdir never ends in places such as /proc.
  missing.forEach(makeFolder)
  const stat = fs.lstatSync(folder)
  if (!stat.isDirectory() || !isSafe(stat)) return undefined
  if (!isWindows && stat.mode & 0o077) fs.chmodSync(folder, 0o700)
  return folder
}

/** Another process may create the folder at the same time. */
function makeFolder(path) {
  try {
    fs.mkdirSync(path, 0o700)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
}

/**
 * If the path is a link, checks its target, too. Run by root, parley must not change another user's home, or
 * the target of a link there.
 */
const ownsPathAndTarget = (path) => [fs.lstatSync(path), fs.statSync(path)].every(isOwnedByUser)

function findCachesFolder(env) {
  if (isWindows) return env.LOCALAPPDATA
  if (env.XDG_CACHE_HOME || !env.HOME) return env.XDG_CACHE_HOME
  return `${env.HOME}/${platform === 'darwin' ? 'Library/Caches' : '.cache'}`
}

/** Windows protects the user's folders, and Node reports neither owner nor mode there. */
const isOwnedByUser = ({ uid }) => isWindows || uid === process.getuid()

/** Returns true if no other user can write to the file or folder. */
const isProtected = (stat) => isOwnedByUser(stat) && (isWindows || (stat.mode & 0o022) === 0)
