import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { requireProfilePath } from '../../settings/folder.ts'
import { chooseName, profileValues, readProfiles } from '../../settings/profiles.ts'
import { schemas } from '../../settings/schemas.ts'
import { type SettingName, settingOf } from '../../settings/table.ts'
import { oneLine } from '../../terminal/escape.ts'
import { createQuestioner, type Questioner } from '../../terminal/question.ts'
import { maskValue } from './key.ts'
import { changeProfile, requireOwnName, type Values } from './profile.ts'
import { withValue } from './set.ts'

export function declare(command: Command): void {
  command.addHelpText(
    'after',
    '\nIt asks on a terminal; in a script use config set. Nothing is sent anywhere.\n',
  )
}

export async function run(context: Context): Promise<void> {
  const { host, flags, input, note, progress } = context
  if (input.stdinKind !== 'terminal') {
    throw usage("config init asks on a terminal, and stdin is none: use 'parley config set'")
  }
  const path = requireProfilePath(host)
  const file = await readProfiles(host, note)
  const { name } = chooseName(file, { named: flags.profile, env: host.env })
  requireOwnName(name)
  const say = (line: string) => void host.stderr.open().write(`${oneLine(line, 2000)}\n`)
  say(`The profile '${name}' in ${path}. Enter keeps what stands in brackets, or skips.`)

  const questioner = createQuestioner({ ...host, cleanups: progress.cleanups })
  const answers = await interview(questioner, profileValues(file, name) ?? {}, say).finally(questioner.close)
  if (answers.length === 0) return note('nothing changed')
  await changeProfile(context, (values) => answers.reduce(withAnswer, values))
  const flag = flags.profile ? ` --profile ${name}` : ''
  note(`saved: 'parley config list --effective${flag}' shows it, 'parley chat${flag} Hello' tries it`)
}

type Answer = [name: SettingName, value: unknown]

const withAnswer = (values: Values, [name, value]: Answer) => withValue(values, name, value)

const services = [
  {
    address: 'baseUrl',
    secret: 'accessToken',
    command: 'accessTokenCommand',
    others: ['family', 'chatModel', 'imageModel'],
  },
  { address: 'agentsUrl', secret: 'apiKey', command: 'apiKeyCommand', others: ['vendor', 'workspaceId'] },
] as const

/** Asks for what each service needs; for one without an address, nothing more. */
async function interview(
  questioner: Questioner,
  known: Values,
  say: (line: string) => void,
): Promise<Answer[]> {
  const answers: Answer[] = []
  const isSet = async (name: SettingName) => {
    const current = answers.reduce(withAnswer, known)[name] ?? settingOf(name).default
    const value = await askFor(name, { current, questioner, say })
    if (value !== undefined) answers.push([name, value])
    return (value ?? current) !== undefined
  }
  for (const { address, secret, command, others } of services) {
    if (!(await isSet(address))) continue
    if (!(await isSet(secret))) await isSet(command)
    for (const other of others) await isSet(other)
  }
  return answers
}

/** Asks until the answer is valid; `undefined` where there is none. */
async function askFor(
  name: SettingName,
  { current, questioner, say }: { current: unknown; questioner: Questioner; say(line: string): void },
): Promise<unknown> {
  const { about, secret: isHidden = false } = settingOf(name)
  const details = `${name}${isHidden ? ', not shown' : ''}`
  const shown = current === undefined ? '' : ` [${maskValue(name, current)}]`
  for (;;) {
    const typed = await questioner.ask(`${oneLine(`${about} (${details})${shown}`)}: `, { isHidden })
    if (typed === '') return undefined
    const parsed = schemas[name]().safeParse(typed)
    if (parsed.success) return parsed.data
    say(`${name} ${parsed.error.issues[0]?.message}`)
  }
}
