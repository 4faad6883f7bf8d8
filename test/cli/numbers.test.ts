import { expect, test } from 'vitest'
import { rejected, run, temporaryFolder } from '../harness/run.ts'

const long = '123456789'.repeat(40)

test.each([
  ['--temperature 1e-3', '--temperature', '1e-3', '"temperature":1e-3'],
  ['--temperature .5', '--temperature', '.5', '"temperature":0.5'],
  ['--temperature -.5', '--temperature', '-.5', '"temperature":-0.5'],
  ['--max-output-tokens with 360 digits', '--max-output-tokens', long, `"maxOutputTokens":${long}`],
  ['--max-output-tokens 0', '--max-output-tokens', '0', '"maxOutputTokens":0'],
])('P53: chat and image send the exact number of %s, also in a batch', async (_, flag, value, field) => {
  const cwd = temporaryFolder({ 'body.json': '{"contents": [], "x": 1.10}', lines: '"hi"\n' })
  for (const argv of [
    ['chat', 'hi'],
    ['image', 'hi', '-m', 'a'],
    ['chat', '-i', 'body.json'],
    ['chat', '--batch', 'lines'],
  ]) {
    const { code, requests } = await run([...argv, flag, value], { cwd })
    // With 0 tokens, the demo answers without text.
    const isCut = value === '0' && flag === '--max-output-tokens' && argv[0] === 'chat'
    expect([code, requests.length]).toEqual([isCut ? 8 : 0, 1])
    expect(requests[0]?.text).toContain(field)
  }
})

test('--max-iterations 0 is sent as typed, and more than 15 digits are a usage error', async () => {
  const send = (value: string) =>
    run(['events', 'send', '-s', 's', '--outcome', 'x', '--max-iterations', value], { stdin: '' })
  const { code, requests } = await send('0')
  expect([code, requests[0]?.text]).toEqual([0, expect.stringContaining('"max_iterations":0')])
  const refused = `--max-iterations must be a whole number of at most 15 digits, not '${long}'`
  expect(await send(long)).toMatchObject(rejected(2, refused))
})

test('chat sends a number as typed if --set puts it into a request body', async () => {
  for (const number of [long, '1e400']) {
    const { code, requests } = await run(['chat', 'x', '--set', `generationConfig.maxOutputTokens=${number}`])
    expect([code, requests[0]?.text]).toEqual([0, expect.stringContaining(`"maxOutputTokens":${number}`)])
  }
})

test.each([
  ['chat x --set', 'generationConfig.maxOutputTokens=1.5', 'maxOutputTokens: must be a whole number'],
  ['chat x --set', 'generationConfig.temperature=hot', 'temperature: must be a number'],
  ['chat x --temperature', 'hot', 'not a number'],
  ['chat x --max-output-tokens', '1.5', 'not a whole number'],
  ['chat --batch b --max-failed', '200%', 'nor a percentage of at most 100%'],
  ['events list -s s --limit', '0', 'not a whole number of 1 or more'],
  ['chat x --retries', '1.5', '--retries 1.5: must be a whole number'],
  ['chat x --retries', long, ': must be at most 100'],
  [
    'chat x --timeout',
    '10 years',
    '--timeout 10 years: must be a duration such as 500ms, 10s, 2m or 1h; a bare',
  ],
  ['chat x --timeout', '1h30m', '--timeout 1h30m: must be a duration'],
  ['chat x --timeout', '', '--timeout must be a duration'],
])('parley exits with 2 for an invalid number of a flag: %s %s', async (command, value, expectedText) => {
  expect(await run([...command.split(' '), value])).toMatchObject(rejected(2, expectedText))
})
