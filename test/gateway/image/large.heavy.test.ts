import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { execute, preloading } from '../../harness/process.ts'
import { temporaryFolder } from '../../harness/run.ts'
import { envFor, response, serve } from '../../harness/server.ts'
import { imageAnswer, inline, png } from './image.ts'

test('I15: an image of 100 MB in base64 needs less than four times its size in memory', async () => {
  const huge = Buffer.concat([png(), Buffer.alloc(75_000_000, 7)])
  const server = await serve((socket) => socket.write(response(imageAnswer(inline(huge)))))
  const cwd = temporaryFolder()
  // The process prints its peak memory at the end.
  const printing = preloading("process.on('exit', () => console.error(process.resourceUsage().maxRSS))")
  const env = { ...envFor(server), ...printing }
  const ended = await execute(['image', 'x', '-m', 'm', '--no-stdin', '-q'], { cwd, env })
  expect(ended).toMatchObject({ code: 0, out: 'x.png\n' })
  expect(Number(ended.err) * 1024).toBeLessThan(4 * 100_000_000)
  expect(readFileSync(join(cwd, 'x.png')).equals(huge)).toBe(true)
})
