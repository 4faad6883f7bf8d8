import { spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { rootCommandEntry } from '../../src/cli/command-tree.ts'
import { loadAllCommands } from '../../src/cli/loaded-commands.ts'
import { childEnvironment } from '../harness/environment.ts'
import { readText, run, temporaryFolder } from '../harness/run.ts'

interface Shell {
  name: string
  /** Starts the shell on a terminal. */
  start: string
  /** Command that binds Escape and q to discard the line. */
  forget: string
  /** Command that loads the output of `parley completion`. */
  load: string
  /** Path of the completion script. The shell finds the script after the command `find`. */
  file: string
  find: string
  /** Command that prints the flags that ~/script offers after $WORDS. */
  flags: string
}

const shells: Shell[] = [
  {
    name: 'bash',
    start: 'bash --norc --noprofile -i',
    forget: `bind '"\\eq": kill-whole-line'`,
    load: 'eval "$(parley completion bash)"',
    file: 'completions/parley',
    find: '. ~/completions/parley',
    flags: `. ~/script; _parley_rows; _parley_find "$WORDS,-"; printf '%s\\n' "\${found[@]%=}"`,
  },
  {
    name: 'zsh',
    start: 'zsh -f -i',
    // By default, TAB in zsh does not complete a longer line, and first runs $() in the word at the cursor.
    forget:
      "bindkey '\\eq' kill-whole-line; bindkey '^I' complete-word; zstyle ':completion:*' insert-tab false",
    load: 'eval "$(parley completion zsh)"',
    file: 'completions/_parley',
    find: 'fpath=(~/completions $fpath); autoload -Uz compinit; compinit -u -D',
    flags: `compdef() {}; . ~/script; _parley_rows; _parley_find "$WORDS,-"; print -rl -- "\${(@)\${(@)found%%:*}%=}"`,
  },
  {
    name: 'fish',
    start: 'fish --no-config -i',
    forget: `bind \\eq 'commandline ""'`,
    load: 'parley completion fish | source',
    file: '.config/fish/completions/parley.fish',
    find: 'set fish_complete_path ~/.config/fish/completions',
    flags: 'source ~/script; complete -C "parley $WORDS -" | string replace -r "\\t.*" ""',
  },
]

/** Fake parley: prints the script or the profiles, or records its arguments. */
const fakeParley = `#!/bin/sh
case "$1 $2" in
  'completion '*) cat ~/script ;;
  'config profiles') echo asked >> ~/words; cat ~/profiles ;;
  *) for word; do printf '<%s>' "$word"; done >> ~/words; echo >> ~/words ;;
esac
`

async function createHome({ name, file }: Shell): Promise<string> {
  const { out, err, code } = await run(['completion', name])
  expect({ err, code }).toEqual({ err: '', code: 0 })
  const profiles = 'my work\na:b@c\n$(touch pwned)\n`touch pwned`\n'
  const files = { script: out, [file]: out, profiles, words: '', 'bin/parley': fakeParley }
  const home = temporaryFolder({ ...files, 'notes.md': '', 'my file': '', 'dir/in.md': '' })
  chmodSync(join(home, 'bin/parley'), 0o755)
  return home
}

const environment = (home: string) => ({
  ...childEnvironment,
  PATH: `${home}/bin:${process.env.PATH}`,
  HOME: home,
  TERM: 'dumb',
  LC_ALL: 'C.UTF-8',
})

/** Types these lines in a shell, and returns the arguments that the fake parley recorded. */
function type(shell: Shell, home: string, lines: string[]): string[] {
  spawnSync('script', ['-qec', shell.start, '/dev/null'], {
    cwd: home,
    env: environment(home),
    input: [shell.forget, ...lines, 'exit', ''].join('\n'),
  })
  return readText(home, 'words').split('\n').slice(0, -1)
}

const completed: [typed: string, called: string][] = [
  ['parley events list --order=de\t', '<events><list><--order=desc>'],
  ['parley ev\tli\t--ord\tde\t', '<events><list><--order><desc>'],
  ['parley events send --beta advisor\t', '<events><send><--beta><advisor-tool-2026-03-01>'],
  ['parley chat -f no\t', '<chat><-f><notes.md>'],
  ['parley chat --file=no\t', '<chat><--file=notes.md>'],
  ['parley chat -f my\t', '<chat><-f><my file>'],
  ['parley chat hi > /dev/null -f no\t', '<chat><hi><-f><notes.md>'],
  ['parley --cacert no\t', '<--cacert><notes.md>'],
  ['parley chat --system @no\t', '<chat><--system><@notes.md>'],
  ['parley chat --system=@no\t', '<chat><--system=@notes.md>'],
  ['parley chat --system @my\t', '<chat><--system><@my file>'],
  ['parley chat --system @dir/i\t', '<chat><--system><@dir/in.md>'],
  ['parley --color nev\tcha\t--thread no\t', '<--color><never><chat><--thread><notes.md>'],
  ['parley config get baseU\t', '<config><get><baseUrl>'],
  ['parley config get chatModel baseU\t', '<config><get><chatModel><baseU>'],
  ['parley help events se\t', '<help><events><send>'],
  ['parley api gat\t', '<api><gateway>'],
  ['parley chat -- --fail\t', '<chat><--><--fail>'],
  ['parley chat events --fail-on-c\t', '<chat><events><--fail-on-cut>'],
  ['parley chat -m alpha-3.1\t', '<chat><-m><alpha-3.1-pro-preview>'],
  ['parley serve --access-token=no\t', '<serve><--access-token=no>'],
  ['parley serve --session no\t', '<serve><--session><notes.md>'],
  ['parley events list -s \\$\t', '<events><list><-s><$>'],
  ['parley sreve --lo\t', '<sreve><--lo>'],
]

const profiles: [typed: string, called: string][] = [
  ['parley chat --profile my\t hi', '<chat><--profile><my work><hi>'],
  ['parley chat --profile "my\t hi', '<chat><--profile><my work><hi>'],
  ["parley chat --profile='my\t hi", '<chat><--profile=my work><hi>'],
  ['parley chat --profile=a:\t hi', '<chat><--profile=a:b@c><hi>'],
  ['parley chat --profile a:b@\t hi', '<chat><--profile><a:b@c><hi>'],
  ['parley config use my\t', '<config><use><my work>'],
  ['parley config delete \\$\t', '<config><delete><$(touch pwned)>'],
]

describe.each(shells.map((shell) => [shell.name, shell] as const))('%s', (name, shell) => {
  test(`${name} completion offers every flag that a command accepts (needs ${name})`, async () => {
    const home = await createHome(shell)
    for (const { commandNames, ownFlags, sharedFlags } of await loadAllCommands(rootCommandEntry)) {
      const env = { ...environment(home), WORDS: commandNames.join(' ') }
      const { stdout } = spawnSync(name, ['-c', shell.flags], { env, encoding: 'utf8' })
      const all = [...ownFlags, ...sharedFlags].flatMap(({ short, long }) => [short, long].filter(Boolean))
      expect(new Set(stdout.trim().split('\n')), commandNames.join(' ')).toEqual(new Set(all))
    }
  })

  test(`${name} completes words without starting parley (needs ${name} and script)`, async () => {
    const home = await createHome(shell)
    const called = type(shell, home, [shell.load, ...completed.map(([typed]) => typed)])
    expect(called).toEqual(completed.map(([, called]) => called))
  })

  test(`${name} loads the completion from the file in its completion folder (needs ${name} and script)`, async () => {
    const home = await createHome(shell)
    const line = 'parley cha\t--fail-on-c\t'
    const called = type(shell, home, [shell.find, line, line])
    expect(called).toEqual(['<chat><--fail-on-cut>', '<chat><--fail-on-cut>'])
  })
})

test('bash completes words with = : and @ if COMP_WORDBREAKS has none of them (needs bash and script)', async () => {
  const [bash] = shells as [Shell]
  const home = await createHome(bash)
  const rows = [...completed, ...profiles]
  const called = type(bash, home, ["COMP_WORDBREAKS=$' \\t\\n'", bash.load, ...rows.map(([typed]) => typed)])
  expect(called.filter((line) => line !== 'asked')).toEqual(rows.map(([, called]) => called))
})
