import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { execute, preloading, start } from './harness/process.ts'
import { answering, message, readText, run, temporaryFolder } from './harness/run.ts'
import { envFor, response, type Script, serve } from './harness/server.ts'
import { createSignal } from './harness/session-service.ts'

const isWindows = process.platform === 'win32'

/** Returns a folder, and variables with which the built program runs `code` and then behaves as on Windows. */
const createWindows = (code = '') => ({
  cwd: temporaryFolder(),
  env: preloading(`Object.defineProperty(process, 'platform', { value: 'win32' })\n${code}`),
})

/**
 * Returns code that makes a function of node:fs fail this number of times if its first argument ends with
 * `end`.
 */
const failing = (name: string, { code, times, end = '' }: { code: string; times: number; end?: string }) =>
  `const fs = require('node:fs')
   const { ${name} } = fs
   let left = ${times}
   fs.${name} = (first, ...more) => {
     if (String(first).endsWith('${end}') && left-- > 0)
       throw Object.assign(new Error('${code}'), { code: '${code}' })
     return ${name}(first, ...more)
   }`

const serving = async (script: Script) => envFor(await serve(script))

const answer = response(message('Hi'))

const pathWith = (env: Record<string, string>) => run(['config', 'path'], { platform: 'win32', env })

test.each([
  [{ APPDATA: 'C:\\Users\\A\\AppData\\Roaming' }, 'C:\\Users\\A\\AppData\\Roaming\\parley\\config.json\n'],
  [{ APPDATA: 'C:\\a', HOME: '/home/ann', XDG_CONFIG_HOME: '/xdg' }, 'C:\\a\\parley\\config.json\n'],
  [{ APPDATA: 'C:\\a', PARLEY_CONFIG_DIR: 'D:\\own' }, 'D:\\own\\config.json\n'],
])('the profile file on Windows is in APPDATA or PARLEY_CONFIG_DIR: %j', async (env, path) => {
  expect(await pathWith(env)).toMatchObject({ code: 0, out: path, err: '' })
})

test.each(['', 'relative'])('on Windows config path exits with 3 if APPDATA is %j', async (APPDATA) => {
  const { code, err } = await pathWith({ APPDATA })
  expect({ code, err }).toEqual({ code: 3, err: expect.stringContaining('set APPDATA or PARLEY_CONFIG_DIR') })
})

const exchange = answering(message('Hi'))

test('on Windows parley treats an -o value that ends with a backslash as a folder', async () => {
  const argv = ['image', 'a fox', '-m', 'painter', '-o', 'pics\\']
  expect(await run(argv, { platform: 'win32' })).toMatchObject({ code: 0, out: 'pics\\a-fox.png\n' })
  expect(await run(['chat', 'x', '-o', 'pics\\'], { platform: 'win32', exchange })).toMatchObject({
    code: 11,
    requests: [],
    err: 'parley: pics\\: no such folder: give the path of a file\n  nothing was sent\n',
  })
})

test('on POSIX parley treats an -o value that ends with a backslash as a file (needs POSIX files)', async () => {
  const cwd = temporaryFolder()
  expect((await run(['chat', 'x', '-o', 'odd\\'], { cwd, exchange, platform: 'linux' })).code).toBe(0)
  expect(readdirSync(cwd)).toEqual(['odd\\'])
})

test('on Windows parley retries to replace a file that another process has open', async () => {
  const { cwd, env } = createWindows(failing('renameSync', { code: 'EBUSY', times: 3 }))
  const argv = ['chat', 'x', '-o', 'a.txt', '-q', '--report', 'r.json']
  const pointed = await serving((socket) => socket.end(answer))
  const ended = await execute(argv, { cwd, env: { ...env, ...pointed } })
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(readText(cwd, 'a.txt')).toBe('Hi\n')
  expect(existsSync(join(cwd, 'r.json'))).toBe(true)
})

test.each([
  [3, 0, ''],
  [100, 3, 'permission denied'],
])('on Windows parley retries if opening a lock fails with EPERM %i times', async (times, code, err) => {
  const { cwd, env } = createWindows(failing('openSync', { code: 'EPERM', times, end: '.parley-lock' }))
  const ended = await execute(['config', 'set', 'timeout', '5'], { cwd, env })
  expect(ended).toMatchObject({ code: code, err: expect.stringContaining(err) })
})

test('parley image copies the image into place if the file system has no hard links', async () => {
  const { cwd, env } = createWindows(failing('linkSync', { code: 'EISDIR', times: 1 }))
  const argv = ['image', 'a fox', '--profile', 'demo', '-q']
  expect(await execute(argv, { cwd, env })).toMatchObject({ code: 0, out: 'a-fox.png\n', err: '' })
})

test('on Windows parley reads a pipe on stdin although Node does not report it as a FIFO', async () => {
  const { cwd, env } = createWindows(`require('node:fs').Stats.prototype.isFIFO = () => false`)
  const argv = ['chat', 'Review:', '--profile', 'demo', '--dry-run']
  // Node connects the stdin of a child to a socket, a shell connects it to a pipe.
  const within = isWindows ? [] : ['sh', '-c', 'cat | "$@"', 'sh']
  const { out } = await execute(argv, { cwd, env, stdin: 'piped text', within })
  expect(out).toContain('piped text')
})

test('on Windows parley exits with 0 if stdout fails with EOF, because the reader closed the pipe', async () => {
  const { env } = createWindows(failing('writeSync', { code: 'EOF', times: 1, end: '1' }))
  expect(await execute(['--version'], { env })).toMatchObject({ code: 0, out: '', err: '' })
})

/** Returns code that sends a signal when the first request is sent. */
const sendSignal = (signal: NodeJS.Signals) =>
  `let has = false
     require('node:diagnostics_channel').subscribe('undici:client:sendHeaders', () => {
       if (!has) setImmediate(() => process.emit('${signal}', '${signal}'))
       has = true
     })`

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('on Windows %s makes parley exit with %i, not with 1', async (name, code) => {
  const { cwd, env } = createWindows(sendSignal(name))
  const pointed = await serving(() => {})
  const ended = await execute(['chat', 'x', '-o', 'a.txt'], { cwd, env: { ...env, ...pointed } })
  expect(ended).toMatchObject({ code, signal: null, out: '' })
  expect(ended.err).toBe('parley: interrupted: the request was sent; it may have been carried out\n')
  expect(readdirSync(cwd)).toEqual([])
})

test('on Windows a batch finishes its running requests after the first SIGINT and exits with 130', async () => {
  const { cwd, env } = createWindows(sendSignal('SIGINT'))
  writeFileSync(join(cwd, 'in.ndjson'), '"a"\n"b"\n')
  const noticed = createSignal()
  const pointed = await serving((socket) => void noticed.triggered.then(() => socket.write(answer)))
  const argv = ['chat', '--batch', 'in.ndjson', '--concurrency', '1', '--results', 'r.ndjson']
  const { child, ended } = start(argv, { cwd, env: { ...env, ...pointed } })
  child.stderr?.once('data', noticed.trigger)
  const { code, err } = await ended
  expect(code).toBe(130)
  expect(err).toMatch(/^parley: finishing running requests.*\nparley: interrupted: 1 ok .* 1 not done /)
})

const withSecretCommand = async (command: string, more: Record<string, string> = {}) => {
  const pointed = await serving((socket) => socket.end(answer))
  return { ...pointed, PARLEY_ACCESS_TOKEN: '', PARLEY_ACCESS_TOKEN_COMMAND: command, ...more }
}

test('on Windows accessTokenCommand runs in cmd.exe (needs Windows)', async () => {
  const ended = await execute(['chat', 'x'], { env: await withSecretCommand('echo token-1& echo more') })
  expect(ended).toMatchObject({ code: 0, out: 'Hi\n', err: '' })
  const env = await withSecretCommand('echo no such item 1>&2& exit 5')
  const failed = await execute(['chat', 'x'], { env })
  expect(failed).toMatchObject({ code: 3, out: '' })
  expect(failed.err).toContain('failed with exit code 5: no such item')
})

test('on Windows accessTokenCommand gets no PARLEY_API_KEY, not even in lower case (needs Windows)', async () => {
  const own = { OWN: 'kept', PARLEY_API_KEY: '' }
  const env = await withSecretCommand('echo [%PARLEY_API_KEY%][%OWN%] 1>&2& exit 1', own)
  const ended = await execute(['chat', 'x'], { env: { ...env, parley_api_key: 'canary-key' } })
  expect(ended.err).toContain('[kept]')
  expect(ended.err).not.toContain('canary')
})

test('on Windows parley ends all processes of accessTokenCommand (needs taskkill)', async () => {
  const cwd = temporaryFolder()
  const family = join(cwd, 'family.cjs')
  writeFileSync(
    family,
    `require('node:fs').appendFileSync('pids', process.pid + '\\n')
       if (!process.argv[2]) require('node:child_process').spawn(process.execPath, [__filename, 'child'], { stdio: 'inherit' })
       setInterval(() => {}, 1000)`,
  )
  const env = await withSecretCommand(`"${process.execPath}" "${family}"`)
  expect(await execute(['chat', 'x', '--deadline', '5'], { cwd, env })).toMatchObject({ code: 3, out: '' })
  const pids = readText(cwd, 'pids').trim().split('\n').map(Number)
  expect(pids).toHaveLength(2)
  await expect.poll(() => pids.filter(isAlive)).toEqual([])
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
