import { readdirSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { execute, preloading } from '../harness/process.ts'
import { run } from '../harness/run.ts'
import { createProfileHome } from './profile-home.ts'

const leftovers = (folder: string) => readdirSync(folder).filter((name) => name !== 'config.json')

test('a hundred concurrent runs of config set save a hundred keys, although an earlier run was killed', async () => {
  const { folder, path, text, world } = createProfileHome({})
  writeFileSync(`${path}.parley-lock`, '')
  const names = Array.from({ length: 100 }, (_, i) => `p${i}`)
  // Most runs are in this process: they use the same lock as separate processes, and are faster.
  const write = (name: string, i: number) =>
    (i % 5 === 0 ? execute : run)(['config', 'set', '-q', '--profile', name, 'timeout', `${i}`], world)
  const all = await Promise.all(names.map(write))
  expect(all.filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
  const { profiles } = JSON.parse(text())
  expect(names.map((name) => profiles[name]?.timeout)).toEqual(names.map((_, i) => i))
  expect(leftovers(folder)).toEqual([])
})

test.each([
  ['10 s ahead', '10_000'],
  ['set back and forth', '(real() % 2 ? 3_600_000 : -3_600_000)'],
])('C20: config set with a clock that is %s does not remove the lock of another run', async (_, shift) => {
  const { folder, text, world } = createProfileHome({})
  const clock = preloading(`const real = Date.now; Date.now = () => real() + ${shift}`)
  // The holder of the lock is slow, so a writer with a wrong clock might clear its lock.
  const slow = preloading(`
     const fs = require('node:fs')
     const { openSync } = fs
     fs.openSync = (path, ...more) => {
       const opened = openSync(path, ...more)
       if (path.endsWith('.parley-lock')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40)
       return opened
     }`)
  const writers = Array.from({ length: 20 }, (_, i) => {
    const env = { ...world.env, ...(i < 10 ? slow : clock) }
    return execute(['config', 'set', '-q', '--profile', `p${i}`, 'timeout', `${i}`], { ...world, env })
  })
  const all = await Promise.all(writers)
  expect(all.filter(({ code, err }) => code !== 0 || err !== '')).toEqual([])
  expect(Object.keys(JSON.parse(text()).profiles)).toHaveLength(20)
  expect(leftovers(folder)).toEqual([])
})
