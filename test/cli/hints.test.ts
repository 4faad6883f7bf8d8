import { expect, test } from 'vitest'
import { run } from '../harness/run.ts'

const chatFirst = 'to ask a model, put chat before the prompt.'
const before = 'is a word of the text, put it before the flag.'

/** A message that ends with a full stop is the whole message. */
test.each([
  ['chat hi --json', "--raw prints the service's JSON"],
  ['chat -p hi', 'the message is an argument without a flag'],
  ['-p hi', 'as in: parley chat "Say hello"'],
  ['chat hi --yes', 'chat, image and api never prompt'],
  ['events run hi --yes', "'parley events run --policy FILE' allows tool uses by rules"],
  ['config check --ask', 'it was removed;'],
  ['image fox --stream', "unknown flag '--stream': only chat has this flag"],
  ['events list -n 3', "unknown flag '-n': --limit N prints the newest N events"],
  ['events -s s1 list', '-s ID names a session, as in: parley events list -s ID'],
  ['chat hi --access-token canary', "'parley config set accessToken', or PARLEY_ACCESS_TOKEN"],
  ['sessions lst', "unknown command 'sessions lst' (did you mean list?)"],
  ['login', "'parley config init' asks for addresses and credentials"],
  ['sessions delete s1', "'sessions delete': 'parley api' calls other endpoints, as in: parley api agents"],
  ['list', "'parley events list' or 'parley sessions list' or 'parley config list'"],
  ['help events sendd', '(did you mean send?)'],
  ['help exitcodes', '(did you mean exit-codes?)'],
  ['help list', "'parley help events list'"],
  ['help chat nope', "unknown command or topic 'chat nope': 'parley chat' has no subcommands."],
  ['help ci github', "'ci' has no subtopics; 'parley help' prints one topic at a time: parley help ci."],
  ['chat hi --timeot 3', '(did you mean --timeout?)'],
  ['chat hi --tokn=canary', "unknown flag '--tokn'"],
  ['chat hi -model=canary', "unknown flag '-model' (did you mean --model?)."],
  ['chat hi -max 3', '(did you mean --max-output-tokens or --max-failed or --max-total-tokens?).'],
  ['chat hi -max-tokens 3', '--max-output-tokens N limits the length of an answer, in chat and image.'],
  ['hi', `unknown command 'hi'; 'parley --help' lists the commands; ${chatFirst}`],
  ['where is it --stream', `unknown command 'where'; 'parley --help' lists the commands; ${chatFirst}`],
  ['-m X hi', "; a command's own flags go after its name, as in: parley chat -m …."],
  ['-z canary chat hi', "; a command's own flags go after its name, as in: parley chat -z …."],
  ['completion tcsh', "<shell>: 'tcsh' is not one of bash, zsh, fish."],
  ['api agents', 'the argument <path> is missing: a path such as /v1/sessions, with any query string.'],
  ['api -i agents /v1/sessions', "<service>: '/v1/sessions' is not one of gateway, agents."],
  ['chat --help=1', '--help takes no value.'],
  ['events -- --help', "unknown flag '--help'"],
  ['chat hi --stream false', `--stream takes no value: --no-stream turns it off; if 'false' ${before}`],
  ['chat hi --allow-http true', `--allow-http takes no value: if 'true' ${before}`],
  ['chat hi --errors', '--errors needs a value: json or github.'],
  ['chat hi --timeout -1', 'must be a duration such as 500ms, 10s, 2m or 1h; a bare number is seconds.'],
  ['chat hi -m --raw', "-m needs a value; if the value is '--raw', write --model='--raw'."],
  ['config get base-url', "setting 'base-url' (did you mean baseUrl?); 'parley help settings' lists them."],
  ['config unset zzzzzzzzzzzz', "unknown setting 'zzzzzzzzzzzz'; 'parley help settings' lists them."],
  ['config set baseUrl', 'baseUrl needs a value: parley config set baseUrl VALUE.'],
  ['config set accessToken', 'accessToken: stdin is empty. Run the command on a terminal, or with < FILE.'],
  ['events list s', "too many arguments: 'events list' takes none, and got 1; -s s names a session."],
  ['events send sesn_2 hello', "'sesn_2' looks like a session id: use -s sesn_2"],
])('P62: the message for a wrong flag or word suggests a right one: %s', async (line, message) => {
  const ended = await run(line.split(' '), { env: { PARLEY_SESSION: 'sesn_1' }, stdin: '' })
  expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
  expect(ended.err).toMatch(/^parley: [^\n]*\n$/)
  expect(ended.err.replace(/\n$/, '.')).toContain(message)
  expect(ended.err).not.toContain('canary')
})

test('parley accepts combined short flags and values attached to short flags', async () => {
  const { code, out } = await run(['chat', '-qv', '-malpha-3', 'hi', '--dry-run'])
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('/models/alpha-3:') })
})

test('events send accepts a message that begins with a session id if it has blanks or -s is given', async () => {
  const send = ['events', 'send', '--dry-run', '--no-stdin']
  const env = { PARLEY_SESSION: 'sesn_1' }
  expect((await run([...send, 'sesn_2', '-s', 'sesn_1'], { env })).code).toBe(0)
  expect((await run([...send, 'sesn_2 is down'], { env })).code).toBe(0)
})
