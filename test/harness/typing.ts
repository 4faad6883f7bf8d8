import { spawn } from 'node:child_process'
import { childEnvironment } from './environment.ts'
import { binary } from './process.ts'

/** Reaction to a question on the screen: typed keys, or a function. */
type Reaction = string | (() => void)

const program = { NODE: process.execPath, PARLEY: binary }

/**
 * Runs a command on a new terminal, and types each answer once its question is on the screen. Returns the
 * text of the screen and the exit code.
 */
export async function runAtTerminal(
  command: string,
  cwd: string,
  answers: [question: string, reaction: Reaction][],
  env: Record<string, string> = {},
) {
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd,
    env: { ...childEnvironment, ...program, ...env, HOME: cwd, TERM: 'xterm', SHELL: '/bin/sh' },
  })
  let screen = ''
  let from = 0
  child.stdout.on('data', (chunk) => {
    screen += chunk
    const [question = '', reaction = ''] = answers[0] ?? []
    const at = screen.indexOf(question, from)
    if (answers.length === 0 || at < 0) return
    from = at + question.length
    answers.shift()
    if (typeof reaction === 'string') child.stdin.write(reaction)
    else reaction()
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  return { code, screen }
}
