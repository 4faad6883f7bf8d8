import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { oneLine } from '../io/escape.ts'
import { createQuestioner, type Questioner } from '../io/question.ts'
import { readProfiles, requireProfilePath } from './profile-file.ts'
import {
  changeProfile,
  chooseName,
  profileValues,
  requireOwnName,
  type Values,
  withValue,
} from './profiles.ts'
import { schemas } from './schemas.ts'
import { maskValue, type SettingName, settingOf } from './table.ts'

/** Asks for everything that a profile needs, then saves it. Throws a usage error if there is no terminal. */
export async function setUpProfile(context: Context): Promise<void> {
  const { host, flags, input, note, cleanups } = context
  if (input.stdinKind !== 'terminal') {
    throw usage("config init asks on a terminal, and stdin is not one: use 'parley config set'")
  }
  const path = requireProfilePath(host)
  const file = await readProfiles(host, note)
  const chosen = chooseName(file, { named: flags.profile, env: host.env })
  requireOwnName(chosen)
  const { name } = chosen
  const say = (line: string) => void host.stderr.open().write(`${oneLine(line, 2000)}\n`)
  say(`This sets up the profile '${name}' in ${path}. Press Enter to keep the value in brackets, or to skip.`)

  const questioner = createQuestioner({ ...host, cleanups })
  const known = profileValues(file, name) ?? {}
  context.calls.sayInstead(() => 'nothing was changed')
  const answers = await interview(questioner, known, say).finally(questioner.close)
  context.calls.sayInstead(() => undefined)
  if (answers.length === 0) return note('nothing changed')
  await changeProfile(context, (values) => answers.reduce(withAnswer, values))
  note(`saved: ${nextSteps(answers.reduce(withAnswer, known), flags.profile ? ` --profile ${name}` : '')}`)
}

/** For each service that has an address: the command that tries it, or the setting that is still missing. */
function nextSteps(values: Values, flag: string): string {
  const steps = services
    .filter(({ address }) => values[address] !== undefined)
    .map(({ secret, command, trial: [words, rest] }) =>
      (values[secret] ?? values[command]) === undefined
        ? `'parley config set${flag} ${secret}' is still needed`
        : `'parley ${words}${flag} ${rest}' tries it`,
    )
  return [`'parley config list --effective${flag}' shows it`, ...steps].join(', ')
}

type GivenValue = [name: SettingName, value: unknown]

const withAnswer = (values: Values, [name, value]: GivenValue) => withValue(values, name, value)

const services = [
  {
    address: 'baseUrl',
    secret: 'accessToken',
    command: 'accessTokenCommand',
    others: ['family', 'chatModel', 'imageModel'],
    trial: ['chat', 'Hello'],
  },
  {
    address: 'agentsUrl',
    secret: 'apiKey',
    command: 'apiKeyCommand',
    others: ['vendor', 'workspaceId'],
    trial: ['events list', '-s SESSION'],
  },
] as const

/** Asks for what each service needs. For a service without an address, only the address. */
async function interview(
  questioner: Questioner,
  known: Values,
  say: (line: string) => void,
): Promise<GivenValue[]> {
  const answers: GivenValue[] = []
  /** Resolves with whether the setting has a value then. */
  const ask = async (name: SettingName) => {
    const values = answers.reduce(withAnswer, known)
    const current = values[name] ?? defaultOf(name, values)
    const value = await askFor(name, { current, questioner, say })
    if (value !== undefined) answers.push([name, value])
    return (value ?? current) !== undefined
  }
  for (const { address, secret, command, others } of services) {
    if (!(await ask(address))) continue
    if (!(await ask(secret))) await ask(command)
    for (const other of others) await ask(other)
  }
  return answers
}

/** The default chat model depends on the family, so the table of settings has none. */
const defaultOf = (name: SettingName, { family = settingOf('family').default }: Values): unknown =>
  name === 'chatModel' ? `${family}-2.5-pro` : settingOf(name).default

/** Asks until the answer is valid; `undefined` if there is none. */
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
