import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { childEnvironment } from '../harness/environment.ts'
import { binary, execute, preloading } from '../harness/process.ts'
import { configFolder, credentials, message, rejected, run, temporaryFolder } from '../harness/run.ts'
import { envFor, response, serve } from '../harness/server.ts'
import { createProfileHome, noSettings, profileFileContent, token } from './profile-home.ts'

const modeOf = (path: string) => (lstatSync(path).mode & 0o777).toString(8)

const toWords = (line: string) => line.split(' ')

/** Commands about the profile file. The environment cannot replace the values that they print. */
const aboutTheFile = ['config list', 'config profiles', 'config get baseUrl'].map(toWords)
const others = ['config list --effective', 'config check', 'chat x --dry-run'].map(toWords)
const readers = [...aboutTheFile, ...others]
const set = ['config', 'set', 'timeout', '5']

const named = ['chat', 'x', '--dry-run', '--profile', 'default']

const fallbackNote = 'settings come from flags and the environment alone'

test('C01: the first write creates the profile file with 0600 and its folder with 0700, with any umask (needs sh)', async () => {
  const cwd = temporaryFolder()
  const ended = await execute(set, { cwd, before: 'umask 0' })
  expect(ended).toMatchObject({ code: 0, out: '', err: '' })
  expect(modeOf(join(cwd, configFolder))).toBe('700')
  expect(modeOf(join(cwd, configFolder, 'config.json'))).toBe('600')
})

test('C02: parley warns about a profile file of mode 0644, and only config set changes its mode to 0600 (needs POSIX files)', async () => {
  const { path, world } = createProfileHome(profileFileContent, 0o644)
  const err = `parley: ${path}: others have access to it; 'chmod 600' removes the access\n`
  for (const argv of readers) expect(await run(argv, world), argv.join(' ')).toMatchObject({ code: 0, err })
  expect(modeOf(path)).toBe('644')
  expect((await run(set, world)).code).toBe(0)
  expect(modeOf(path)).toBe('600')
})

test.each([
  ['cut off', `{"profiles":{"default":{"accessToken":"${token}`, 'line 1, column'],
  ['JSON with a bare word', `{\n "profiles": {"default": {"accessToken": ${token}}}}`, 'line 2, column'],
  ['empty', '', 'not valid JSON: it is empty'],
  ['null', 'null', 'must be an object'],
  [
    'JSON with a text as a profile',
    `{"profiles":{"default":"${token}"}}`,
    'profiles.default: must be an object',
  ],
])('C04: parley exits with 3 and prints no content of a profile file that is %s', async (_, text, why) => {
  const { cwd, path, world } = createProfileHome()
  writeFileSync(path, Buffer.from(text, 'latin1'))
  for (const argv of [...readers, ['chat', 'x'], set, ['config', 'use', 'default']]) {
    const ended = await run(argv, world)
    expect(ended).toMatchObject({ code: 3, out: '', requests: [] })
    expect(ended.err).toMatch(/^parley: [^\n]*\n$/)
    expect(ended.err).toContain(`${path}: `)
    expect(ended.err).toContain(why)
    expect(ended.err).toContain("; correct the file, or move it away and run 'parley config init'")
    expect(ended.err).not.toContain('canary')
  }
  expect(readFileSync(path, 'latin1')).toBe(text)
  expect(existsSync(join(cwd, configFolder, 'config.json.parley-lock'))).toBe(false)
})

test('C15: config set keeps unknown keys at every level, and accepts a byte order mark', async () => {
  const odd = {
    future: { a: [1, null] },
    current: 'work',
    profiles: { work: { newSetting: { b: 1 }, timeout: 3 }, 'with.dot': { retries: 1 } },
  }
  const { text, world } = createProfileHome(`\ufeff${JSON.stringify(odd)}`)
  expect(await run(set, world)).toMatchObject({ code: 0, err: '' })
  expect(JSON.parse(text())).toEqual({
    ...odd,
    version: 1,
    profiles: { ...odd.profiles, work: { newSetting: { b: 1 }, timeout: 5 } },
  })
})

test.each([
  ['"quoted\'`$(x)\\', '"quoted\'`$(x)\\'],
  ['  spaces \n', 'spaces'],
])('C19: config set saves a secret exactly, without surrounding blanks: %j', async (given, kept) => {
  const { text, world } = createProfileHome({})
  expect((await run(['config', 'set', 'accessToken'], { ...world, stdin: given })).code).toBe(0)
  expect(JSON.parse(text()).profiles.default.accessToken).toBe(kept)
  expect((await run(['config', 'get', 'accessToken', '--reveal'], world)).out).toBe(`${kept}\n`)
})

test.each([
  ['unset', undefined],
  ['missing', '/nonexistent'],
])('C10: the environment has all settings of chat if HOME is %s (needs another user)', async (_, HOME) => {
  const server = await serve((socket) => socket.end(response(message('Hi'))))
  const cwd = temporaryFolder()
  const world = { cwd, env: { HOME, ...envFor(server) }, isNobody: true }
  chmodSync(cwd, 0o777)
  expect(await execute(['chat', 'x', '--no-stdin'], world)).toMatchObject({ code: 0, out: 'Hi\n', err: '' })
  const written = await execute(set, world)
  expect(written).toMatchObject({ code: 3, out: '', err: expect.stringMatching(/^parley: [^\n]*\n$/) })
  expect(readdirSync(cwd)).toEqual([])
})

test.each([
  [{ XDG_CONFIG_HOME: 'relative' }, '.config/parley'],
  [{ XDG_CONFIG_HOME: '/xdg' }, '/xdg/parley'],
  [{ XDG_CONFIG_HOME: '/xdg', PARLEY_CONFIG_DIR: 'own' }, 'own'],
])('C11: with %j, the profile file is in the folder %s (needs POSIX files)', async (env, folder) => {
  const cwd = temporaryFolder()
  const { out } = await run(['config', 'path'], { cwd, env, platform: 'linux' })
  expect(out).toBe(`${resolve(cwd, folder)}/config.json\n`)
})

test('C12: parley reads a profile file through a symbolic link, but never writes through it (needs POSIX files)', async () => {
  const { cwd, folder, path, text, world } = createProfileHome(profileFileContent, 0o640)
  const target = join(cwd, 'target.json')
  renameSync(path, target)
  symlinkSync(target, path)
  const before = text()
  const read = await run(['config', 'get', 'baseUrl'], world)
  expect(read).toMatchObject({ code: 0, out: 'https://a.test\n' })
  expect(read.err).toBe(`parley: ${path}: others have access to it; 'chmod 600' removes the access\n`)
  const advice = 'it is a symbolic link: set PARLEY_CONFIG_DIR to the folder'
  const refused = rejected(3, `${path}: ${advice} of the file that it points to`)
  expect(await run(set, world)).toMatchObject(refused)
  expect(text()).toBe(before)
  expect(modeOf(target)).toBe('640')
  expect(lstatSync(path).isSymbolicLink()).toBe(true)
  const link = join(cwd, 'link')
  symlinkSync(folder, link)
  const linked = { ...world, env: { ...world.env, PARLEY_CONFIG_DIR: link } }
  expect(await run(set, linked)).toMatchObject(rejected(3, `${link}: ${advice} that it points to`))
})

test.each([
  ['a folder', 'mkdir', 'it is a folder'],
  ['a pipe', 'mkfifo', 'not a regular file'],
])('C13: parley exits with 3 if config.json is %s (needs FIFOs)', async (_, make, expectedText) => {
  const { path, world } = createProfileHome()
  rmSync(path)
  spawnSync(make, [path])
  for (const argv of [...readers, set]) {
    const ended = await run(argv, world)
    expect(ended).toMatchObject({ code: 3, out: '', err: expect.stringMatching(/^parley: [^\n]*\n$/) })
    if (argv[1] !== 'set') expect(ended.err).toContain(expectedText)
  }
})

test('C17: commands that need the profile file of another user exit with 3 (needs root)', async () => {
  const { path, text, world } = createProfileHome()
  chownSync(path, 12345, 12345)
  const before = text()
  for (const argv of [...aboutTheFile, set, named]) {
    expect(await run(argv, world)).toMatchObject(rejected(3, 'belongs to another user (uid 12345)'))
  }
  const env = { ...world.env, ...credentials }
  const ended = await run(['chat', 'x'], { ...world, env })
  expect(ended).toMatchObject({ code: 0, requests: [{ url: expect.stringContaining('gateway.test') }] })
  expect(ended.err).toBe(`parley: ${path}: it belongs to another user (uid 12345); ${fallbackNote}\n`)
  expect(text()).toBe(before)
})

test('only commands that need the profile file exit with 3 if HOME is not a folder (needs POSIX files)', async () => {
  const world = { cwd: temporaryFolder(), env: { HOME: '/dev/null', XDG_CONFIG_HOME: '' } }
  const problem = '/config.json: a part of its path is not a folder'
  for (const argv of [...aboutTheFile, set, named])
    expect(await run(argv, world)).toMatchObject(rejected(3, problem))
  const ended = await run(['chat', 'x'], world)
  expect(ended.code).toBe(0)
  expect(ended.err).toMatch(new RegExp(`^parley: /dev/null/\\S+${problem}; ${fallbackNote}\n$`))
})

const leftovers = (folder: string) => readdirSync(folder).filter((name) => name !== 'config.json')

test('C07, C08: config set removes the lock and the temporary file of a killed writer, and no other file', async () => {
  const { folder, path, world } = createProfileHome({})
  writeFileSync(`${path}.tmp-0123456789abcdef`, 'canary-token-aaaa1111')
  writeFileSync(`${path}.bak`, 'a backup of the user')
  writeFileSync(`${path}.parley-lock`, '')
  expect((await execute(set, world)).code).toBe(0)
  writeFileSync(`${path}.parley-lock`, '')
  const ahead = Date.now() / 1000 + 3600
  // The lock has a time in the future.
  utimesSync(`${path}.parley-lock`, ahead, ahead)
  expect((await execute(set, world)).code).toBe(0)
  expect(leftovers(folder)).toEqual(['config.json.bak'])
})

test('a signal to config set that holds the lock leaves no extra file (needs signals)', async () => {
  const { cwd, folder, text } = createProfileHome()
  // The process sends the signal to itself, because a signal from the test could be too late.
  const killing = preloading(`
       performance.now = () => 0
       const fs = require('node:fs')
       const { openSync } = fs
       let isFirst = true
       fs.openSync = (name, ...how) => {
         if (isFirst && name.endsWith('config.json.parley-lock')) {
           isFirst = false
           process.kill(process.pid, 'SIGTERM')
         }
         return openSync(name, ...how)
       }`)
  const { code, signal } = await execute(set, { cwd, env: { ...noSettings, ...killing } })
  // parley handles the signal after it has released the lock, so it may already have finished.
  expect([code, signal]).toEqual(code === null ? [null, 'SIGTERM'] : [0, null])
  expect(JSON.parse(text()).profiles.default).toMatchObject({ timeout: 5 })
  expect(leftovers(folder)).toEqual([])
})

test('C09: config set on a full disk leaves the profile file unchanged (needs unshare)', () => {
  const { folder, text, world } = createProfileHome()
  const script = `
      cp config.json ../kept.json && mount -t tmpfs -o size=64k,mode=700 tmpfs "$PWD" && cd "$PWD" &&
      cat ../kept.json > config.json && chmod 600 config.json && (cat /dev/zero > filler; true) 2>/dev/null
      "$0" "$1" config set chatModel "$(printf 'm%.0s' $(seq 5000))"
      echo "exit $?" >&2
      cat config.json; ls -A`
  const { stdout, stderr } = spawnSync('unshare', ['-m', 'sh', '-c', script, process.execPath, binary], {
    cwd: folder,
    env: { ...childEnvironment, HOME: world.cwd },
    encoding: 'utf8',
  })
  expect(stderr).toBe(`parley: ${folder}/config.json: no space left on the disk\nexit 3\n`)
  expect(stdout).toBe(`${text()}config.json\nfiller\n`)
})
