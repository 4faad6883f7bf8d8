import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { rejected, temporaryFolder } from '../../harness/run.ts'
import { image, inline, png } from './image.ts'

test('image posts to its endpoint with the flags in the body', async () => {
  const argv = ['a', 'fox', '--temperature', '0.5', '--max-output-tokens', '9']
  const { requests } = await image([...argv, '--set', 'generationConfig.imageConfig.aspectRatio=16:9'])
  const url = 'https://gateway.test/api/image/alpha/v1beta/models/alpha-image:generateContent'
  const headers = { Authorization: 'Bearer canary-token-0123456789', 'Content-Type': 'application/json' }
  expect(requests).toMatchObject([{ method: 'POST', url, headers }])
  expect(JSON.parse(requests[0]?.text ?? '')).toEqual({
    contents: [{ role: 'user', parts: [{ text: 'a fox' }] }],
    generationConfig: { temperature: 0.5, maxOutputTokens: 9, imageConfig: { aspectRatio: '16:9' } },
  })
})

test('image uses the model of -m or else of the setting imageModel, and exits with 2 without both', async () => {
  expect((await image(['x', '-m', 'a/b'])).requests[0]?.url).toContain('/models/a%2Fb:generateContent')
  expect(await image(['x'], { env: { PARLEY_IMAGE_MODEL: '' } })).toMatchObject(rejected(2, '-m NAME'))
})

test('image adds the files of -f, sends a body unchanged, and reads a prompt or a body from stdin', async () => {
  const cwd = temporaryFolder({ 'ref.png': png(7) })
  const { requests } = await image(['in snow', '-f', 'ref.png'], { cwd })
  expect(JSON.parse(requests[0]?.text ?? '').contents[0].parts).toEqual([{ text: 'in snow' }, inline(png(7))])

  const body = '{ "contents":[{"parts":[{"text":"Two owls"}]}], "seed" : 1.50 }'
  writeFileSync(join(cwd, 'body.json'), body)
  expect(await image(['-i', 'body.json'], { cwd })).toMatchObject({ code: 0, out: 'two-owls.png\n' })
  expect((await image([], { stdin: body })).requests[0]?.text).toBe(body)
  expect((await image([], { stdin: 'A cat' })).out).toBe('a-cat.png\n')
})

test.each([
  ['--temperature', 'hot'],
  ['--max-output-tokens', '0.5'],
  ['--set', 'contents=5'],
])('image exits with 2 and sends nothing for %s %s', async (flag, value) => {
  expect(await image(['x', flag, value])).toMatchObject({ code: 2, out: '', requests: [], files: [] })
})
