import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { configFolder } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { okResponse, respondWith } from './answers.ts'
import { type FaultRow, testFaultsOnce } from './rows.ts'
import { terminalCommand } from './terminal.ts'

const profileFile = `home/${configFolder}/config.json`

/** Answers after the terminal has shown that parley waits. */
function answerAfterSpinner(): Pick<FaultRow, 'script' | 'during'> {
  let answer = () => {}
  return {
    script: (...request) => {
      answer = () => respondWith(okResponse)(...request)
    },
    during: async ({ out, waitUntil }) => {
      await waitUntil(() => out().includes('waiting for the answer'))
      answer()
    },
  }
}

testFaultsOnce('V: parley prints readable output on a terminal', [
  ...['NO_COLOR=1', ''].map(
    (env): FaultRow => ({
      name: `V41: the spinner of parley has ${env ? `no colors with ${env}` : 'colors without a color setting'}`,
      shell: terminalCommand(`stty cols 80 rows 24; TERM=xterm ${env} parley chat hi`),
      ...answerAfterSpinner(),
      code: 0,
      out: (out) => {
        expect(out.toString()).toContain('waiting for the answer')
        expect(out.includes('\x1b[36m')).toBe(env === '')
        return true
      },
    }),
  ),
  {
    name: 'V41: the spinner of parley shows the seconds until the next attempt',
    shell: terminalCommand('stty cols 80 rows 24; TERM=xterm parley chat hi'),
    script: respondWith(response('{}', '429 Slow down', ['retry-after: 2']), okResponse),
    code: 0,
    reqs: 2,
    out: (out) => /trying again in 2 s.*trying again in 1 s/s.test(out.toString()),
  },
  ...['', 'KITTY_WINDOW_ID=1'].flatMap((env) =>
    ['', '--preview'].map(
      (flag): FaultRow => ({
        name: `V42: parley image${flag && ` ${flag}`} prints no image on a terminal without graphics${env && `, even with ${env}`}`,
        shell: terminalCommand(`TERM=dumb ${env} parley image fox --profile demo ${flag} 2>err`),
        code: 0,
        out: 'fox.png\r\n',
        files: ['cwd/err', 'cwd/fox.png'],
        check: ({ ending }) => {
          const message = '--preview: stdout is not a terminal that shows images'
          expect(ending.files.get('cwd/err')?.includes(message)).toBe(flag !== '')
        },
      }),
    ),
  ),
  ...(
    [
      ['chat hi', 'PARLEY_ACCESS_TOKEN', ''],
      ['chat hi -H X-Api-Key:x', 'PARLEY_ACCESS_TOKEN and X_API_KEY', ''],
      ['chat hi -H Authorization:x', 'AUTHORIZATION', 't'],
      ['chat hi -q', undefined, ''],
    ] as const
  ).map(
    ([command, variables, token]): FaultRow => ({
      name: `V44: parley ${command} --curl ${variables ? `prints that the curl command needs ${variables}` : 'prints no note about missing variables'}${token && ' if the token is set'}`,
      argv: [...command.replaceAll(':', ': ').split(/ (?!x)/), '--curl', '--no-stdin'],
      env: { PARLEY_ACCESS_TOKEN: token, PARLEY_API_KEY: '' },
      code: 0,
      out: (out) => out.includes('curl --silent') && !out.includes('before running'),
      check: ({ ending }) =>
        expect(ending.err).toBe(variables ? `parley: set ${variables} before running the command\n` : ''),
    }),
  ),
  ...['{"broken', '{"profiles":{"demo":5}}'].flatMap((content) =>
    [
      ['chat', 'hi', '--profile', 'demo'],
      ['config', 'list', '--profile', 'demo'],
    ].map(
      (argv): FaultRow => ({
        name: `V45: parley ${argv[0]} --profile demo works although the profile file contains ${content}`,
        argv: [...argv, '-q'],
        prepare: (folder) => {
          mkdirSync(join(folder, 'home', configFolder), { recursive: true, mode: 0o700 })
          writeFileSync(join(folder, profileFile), content, { mode: 0o600 })
        },
        code: 0,
        out: (out) => out.length > 0,
        files: [profileFile],
      }),
    ),
  ),
])
