import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { configFolder } from '../harness/run.ts'
import { answering, ok } from './answers.ts'
import { faultsOnce, type Row } from './rows.ts'
import { onTerminal } from './terminal.ts'

const profileFile = `home/${configFolder}/config.json`

/** Answers after the terminal has shown that parley waits. */
function answerAfterSpinner(): Pick<Row, 'script' | 'during'> {
  let answer = () => {}
  return {
    script: (...request) => {
      answer = () => answering(ok)(...request)
    },
    during: async ({ out, child }) => {
      while (!out().includes('waiting for the answer') && child.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 20))
      answer()
    },
  }
}
const noToolUses =
  'parley: no tool uses: give their ids, --pending, or events as JSON through a pipe or with -i FILE'

faultsOnce('V: output for a person', [
  ...[
    ['NO_COLOR=1', '', false],
    ['', '', true],
  ].map(
    ([env, flag, isColored]): Row => ({
      name: `V41: parley obeys the color settings in the spinner: ${env || flag || 'no setting'}`,
      shell: onTerminal(`stty cols 80 rows 24; TERM=xterm ${env} parley chat hi ${flag}`),
      ...answerAfterSpinner(),
      code: 0,
      out: (out) => {
        expect(out.toString()).toContain('waiting for the answer')
        expect(out.includes('\x1b[36m')).toBe(isColored)
        return true
      },
      reqs: 1,
    }),
  ),
  ...['', 'KITTY_WINDOW_ID=1'].flatMap((env) =>
    ['', '--preview'].map(
      (flag): Row => ({
        name: `V42: parley prints no picture on a terminal that shows only text: ${env || 'no variable'} ${flag}`,
        shell: onTerminal(`TERM=dumb ${env} parley image fox --profile demo ${flag} 2>err`),
        code: 0,
        out: 'fox.png\r\n',
        files: ['cwd/err', 'cwd/fox.png'],
        check: ({ ending }) => {
          const message = '--preview: stdout is not a terminal that shows pictures'
          expect(ending.files.get('cwd/err')?.includes(message)).toBe(flag !== '')
        },
      }),
    ),
  ),
  ...['--allow', '--deny'].map(
    (verdict): Row => ({
      name: `V43: parley rejects confirm ${verdict} without ids on a terminal`,
      shell: onTerminal(`NO_COLOR=1 parley events confirm ${verdict} 2>&1`),
      code: 2,
      out: `${noToolUses}\r\n`,
    }),
  ),
  ...(
    [
      ['chat hi', 'PARLEY_ACCESS_TOKEN', ''],
      ['chat hi -H X-Api-Key:x', 'PARLEY_ACCESS_TOKEN and X_API_KEY', ''],
      ['chat hi -H Authorization:x', 'AUTHORIZATION', 't'],
      ['chat hi -q', undefined, ''],
    ] as const
  ).map(
    ([command, variables, token]): Row => ({
      name: `V44: parley names the variables that the command of --curl needs: ${command}${token && ' with a token'}`,
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
      (argv): Row => ({
        name: `V45: parley runs the demo profile although the profile file contains ${JSON.stringify(content)} (${argv[0]})`,
        argv: [...argv, '-q'],
        prepare: (folder) => {
          mkdirSync(join(folder, 'home', configFolder), { recursive: true, mode: 0o700 })
          writeFileSync(join(folder, profileFile), content, {
            encoding: 'latin1',
            mode: 0o600,
          })
        },
        code: 0,
        out: (out) => out.length > 0,
        files: [profileFile],
      }),
    ),
  ),
])
